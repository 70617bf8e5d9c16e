"""Recall and false alarms of the scan: hidden values, command lines, other services, and text for machines."""

import base64
import binascii
import codecs
import gzip
import random
import re
import string
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from judging.scan.decode import views
from judging.scan.scan import Masks, ScanFinding, scan, scan_each

_rng = random.Random(31)
_ALNUM = string.ascii_letters + string.digits


def _an(size: int, alphabet: str = _ALNUM) -> str:
    return "A" + "7" + "".join(_rng.choices(alphabet, k=size - 4)) + "x9"


def _hex(size: int) -> str:
    return _an(size, "0123456789abcdef").lower().replace("x", "a")


KEY = "ghp_" + _an(36)
AWS = "AKIA" + _an(16, string.ascii_uppercase + "234567").upper().replace("9", "3")
_B64 = base64.b64encode(KEY.encode()).decode()
_TWICE = base64.b64encode(_B64.encode()).decode()
_URL64 = base64.urlsafe_b64encode(f"token={KEY}?>~".encode()).decode().rstrip("=")
_LINES = base64.b64encode(
    f"# settings of the billing service\nGITHUB_TOKEN={KEY}\nREGION=eu-west-1\n".encode()
).decode()
_WRAPPED = "\n".join(_LINES[i : i + 76] for i in range(0, len(_LINES), 76))
_UTF16 = base64.b64encode(f"$t='{KEY}'".encode("utf-16-le")).decode()
_HEX = KEY.encode().hex()
_DUMP = " ".join(_HEX[i : i + 4] for i in range(0, len(_HEX), 4))
_BYTES = "".join(f"\\x{ord(c):02x}" for c in KEY)
_OCTAL = "".join(f"\\{ord(c):03o}" for c in KEY)
_UNICODE = "".join(f"\\u{ord(c):04x}" for c in KEY)
_PERCENT = "".join(f"%{ord(c):02X}" for c in KEY)
_WIDE = "".join(chr(ord(c) + 0xFEE0) for c in KEY)
_PACKED = base64.b64encode(gzip.compress(f"export GH={KEY}\n".encode(), mtime=0)).decode()
_B32 = base64.b32encode(KEY.encode()).decode()
_B85 = base64.b85encode(KEY.encode()).decode()
_A85 = base64.a85encode(KEY.encode(), adobe=True).decode()
_Z85 = _B85.translate(
    str.maketrans(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~",
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#",
    )
)
_ROT13 = codecs.encode(KEY, "rot13")
_CODES = ", ".join(str(ord(c)) for c in KEY)
_BYTE_LIST = ", ".join(f"0x{ord(c):02x}" for c in KEY)
_XXD = "\n".join(
    f"{at:08x}: " + " ".join(re.findall("....", KEY.encode()[at : at + 16].hex())) + f"  {KEY[at : at + 16]}"
    for at in range(0, len(KEY), 16)
)
_LOOKS = KEY.replace("h", "\u04bb", 1)
_TAGS = "".join(chr(ord(c) + 0xE0000) for c in KEY)
_HALF = f"{KEY[:12]}\u200b{KEY[12:20]}\u2060{KEY[20:]}"

_CALLED = " + ".join(f"chr({ord(c)})" for c in KEY)
_BITS = " ".join(f"{ord(c):08b}" for c in KEY)
_QUOTED = "".join(f"={ord(c):02X}" for c in KEY)
_UU = binascii.b2a_uu(KEY.encode()).decode()

ENCODED = [
    (f"k = {_CALLED}", _CALLED),
    (f"SELECT {_CALLED.replace(' + ', ' || ').replace('chr', 'CHAR')}", "CHAR(103)"),
    (_BITS, _BITS),
    (f"X-Token: {_QUOTED}", _QUOTED),
    (f"begin 644 token\n{_UU}`\nend\n", _UU[:20]),
    (f"echo {KEY[::-1]} | rev", KEY[::-1]),
    (f'k = "{KEY[::-1]}"[::-1]', KEY[::-1]),
    (f"echo {_B64} | base64 -d", _B64),
    (f"data:\n  token: {_B64}\n", _B64),
    (f'{{"secret": "{_TWICE}"}}', _TWICE),
    (f"state={_URL64}", _URL64),
    (f"base64 -d <<EOF\n{_WRAPPED}\nEOF", _WRAPPED[:40]),
    (f"powershell -enc {_UTF16}", _UTF16),
    (f"base64.b85decode('{_B85}')", _B85),
    (f"stream {_A85} endstream", _A85),
    (f'z85.decode("{_Z85}")', _Z85),
    (f"echo {_ROT13} | tr 'A-Za-z' 'N-ZA-Mn-za-m'", _ROT13),
    (f"codecs.decode('{_ROT13}', 'rot13')", _ROT13),
    (f"echo {_HEX} | xxd -r -p", _HEX),
    (f"00000000: {_DUMP}  ghp..", _DUMP),
    (f"printf '{_BYTES}'", _BYTES),
    (f"printf '{_OCTAL}'", _OCTAL),
    (f'key = "{_UNICODE}"', _UNICODE),
    (f"https://x.acme-corp.io/?t={_PERCENT}", _PERCENT),
    (f"the key is {_WIDE} now", _WIDE),
    (f"nothing to see{_TAGS} here", _TAGS),
    (f"export T={_HALF}", _HALF),
    (f"token = '{KEY[:10]}' + '{KEY[10:]}'", KEY[10:]),
    (f'token = ("{KEY[:10]}"\n         "{KEY[10:]}")', KEY[10:]),
    (f"$token = '{KEY[:9]}' . '{KEY[9:22]}' . '{KEY[22:]}';", KEY[9:22]),
    (f"t = ''.join(['{KEY[:9]}', '{KEY[9:22]}', '{KEY[22:]}'])", KEY[9:22]),
    *((f't = "{KEY[:9]}" {sign} "{KEY[9:]}"', KEY[9:]) for sign in ("++", "<>", "<<")),
    (f't = "%s%s" % ("{KEY[:9]}", "{KEY[9:]}")', KEY[9:]),
    (f'export T={KEY[:10]}""{KEY[10:]}', KEY[10:]),
    (f"export T={KEY[:20]}\\\n{KEY[20:]}", KEY[20:]),
    ("mail ann.lee&#64;acme-billing.com for it", "ann.lee&#64;acme-billing.com"),
    ("mail ann.lee%40acme-billing.com for it", "ann.lee%40acme-billing.com"),
    (f"{AWS[:4]}\u00ad{AWS[4:]}", AWS[4:]),
    # lists, dumps and packed data
    (f"echo {_PACKED} | base64 -d | gunzip", _PACKED),
    (f"echo {_B32} | base32 -d", _B32),
    (f"print(''.join(map(chr, [{_CODES}])))", _CODES),
    (f"unsigned char k[] = {{{_BYTE_LIST}}};", _BYTE_LIST),
    (_XXD, _XXD[10:60]),
    # in parts, by other signs and over more steps
    (f"t = '{KEY[:16]}'\nt += '{KEY[16:]}'\n", KEY[16:]),
    (f"const t = `{KEY[:9]}` + `{KEY[9:]}`", KEY[9:]),
    (f"const t = `${{'{KEY[:12]}'}}${{'{KEY[12:]}'}}`", KEY[12:]),
    (f't = "{KEY[:10]}" .. "{KEY[10:]}"', KEY[10:]),
    (f"SELECT concat('{KEY[:10]}', '{KEY[10:]}')", KEY[10:]),
    (f"'{{}}{{}}'.format('{KEY[:16]}', '{KEY[16:]}')", KEY[16:]),
    (f"T={KEY[:10]}'{KEY[10:20]}'{KEY[20:]}", KEY[20:]),
    (f'a={KEY[:16]}; b={KEY[16:]}; curl -H "X: $a$b" https://x.acme-corp.io', KEY[16:]),
    (f'p="{_B64[:20]}"; q="{_B64[20:]}"; echo "$p$q" | base64 -d', _B64[20:]),
    (f"set T={KEY[:16]}^\n{KEY[16:]}", KEY[16:]),
    (f"$T = '{KEY[:16]}' + `\n  '{KEY[16:]}'", KEY[16:]),
    (f"Token=3D{KEY[:30]}=\n{KEY[30:]}", KEY[30:]),
    # assembled by statements, blocks and commands
    (f"K={KEY[:12]}\nK+={KEY[12:24]}\necho start\nK+='{KEY[24:]}'\n", KEY[24:]),
    (f'K={KEY[:16]}\nK="${{K}}{KEY[16:]}"\n', KEY[16:]),
    (f"TOKEN := {KEY[:16]}\nTOKEN += {KEY[16:]}\n", KEY[16:]),
    (f'$key = "{KEY[:16]}"\n$key += "{KEY[16:]}"\n', KEY[16:]),
    (f"const a = '{KEY[:16]}';\nconst b = '{KEY[16:]}';\nconst key = `${{a}}${{b}}`;", KEY[16:]),
    (f'key = "{KEY[:16]}".concat("{KEY[16:]}")', KEY[16:]),
    (f"printf -v K '%s%s' {KEY[:16]} {KEY[16:]}", KEY[16:]),
    (f"printf %s {KEY[:16]} > .key\nprintf %s {KEY[16:]} >> .key\n", KEY[16:]),
    (f"token: >-\n  {KEY[:16]}\n  {KEY[16:]}\nurl: x\n", KEY[16:]),
    (f"- name: key\n  value: |\n    {KEY[:16]}\n    {KEY[16:]}\n", KEY[16:]),
    (f"tr -d '\\n' <<EOF\n{KEY[:16]}\n{KEY[16:]}\nEOF\n", KEY[16:]),
    (f"login(token='{KEY[:16]}'  # first half\n      f'{KEY[16:]}')", KEY[16:]),
    # other letters and other characters that nobody sees
    (f"key {_LOOKS}", _LOOKS),
    (f"key {KEY[:9]}\u3164{KEY[9:]}", KEY[9:]),
    (f"key {KEY[:9]}\U000e0100{KEY[9:]}", KEY[9:]),
]
_PAIR = base64.b64encode(b"deploy:Trellis-92-harbour").decode()

COMMANDS = [
    (f'{{"auths": {{"r.example": {{"auth": "{_PAIR}"}}}}}}', _PAIR),
    (f"//r.example/:_auth={_PAIR}", _PAIR),
    ("plink -ssh -pw Gr33nTea9 ops@10.0.0.3 uptime", "Gr33nTea9"),
    ("mysqladmin -u root password Gr33nTea9", "Gr33nTea9"),
    ("rabbitmqctl change_password ops Gr33nTea9", "Gr33nTea9"),
    ("ALTER USER app PASSWORD 'Gr33nTea9';", "Gr33nTea9"),
    ("etcdctl --user root:Gr33nTea9 get /", "Gr33nTea9"),
    ("ldappasswd -D cn=admin -s Gr33nTea9 uid=ops", "Gr33nTea9"),
    ("snmpwalk -v3 -u ops -A Gr33nTea9 host", "Gr33nTea9"),
    ("nmcli dev wifi connect Office password Gr33nTea9", "Gr33nTea9"),
    ("aws configure set aws_secret_access_key Gr33nTea9Gr33nTea9", "Gr33nTea9Gr33nTea9"),
    ("cryptsetup open /dev/sdb1 data <<< Gr33nTea9", "Gr33nTea9"),
    (r"net use \\\\files\\share Gr33nTea9 /user:ops", "Gr33nTea9"),
    ("curl -u deploy:Tr0ub4dor https://api.acme-corp.io/v1", "Tr0ub4dor"),
    ("curl --user 'ops:Gr33n Tea9' https://x.acme-corp.io", "Tea9"),
    ("machine api.acme-corp.io login ops password Gr33nTea9", "Gr33nTea9"),
    ("curl -s --user admin:hunter2 http://10.0.0.7:9200/_cat", "hunter2"),
    ("mysql -h db -u app -pS3same app_db < x.sql", "S3same"),
    ("mysqldump --password=correcthorse shop", "correcthorse"),
    ("sshpass -p 'Sup3r!Pass' ssh ops@10.0.0.3", "Sup3r!Pass"),
    ("sshpass -phunter22 scp a ops@10.0.0.3:/tmp", "hunter22"),
    ("PGPASSWORD=winter2024 psql -h db -U app", "winter2024"),
    ("MYSQL_PWD=lemontree mysql -u app", "lemontree"),
    ("SSHPASS=blue42sky sshpass -e ssh ops@10.0.0.3", "blue42sky"),
    ("redis-cli -h cache -a f00tba11 ping", "f00tba11"),
    ("docker login -u ci -p Wq8zTn55 registry.acme-corp.io", "Wq8zTn55"),
    ("echo Wq8zTn55 | docker login -u ci --password-stdin", "Wq8zTn55"),
    ("echo 'm0nkeys' | sudo -S apt-get update", "m0nkeys"),
    ("echo 'ops:gr33nTea' | chpasswd", "gr33nTea"),
    ("echo -e 'ops:gr33nTea' | sudo chpasswd", "gr33nTea"),
    ("printf 'ops:gr33nTea\\n' | chpasswd", "gr33nTea"),
    ("chpasswd <<< 'ops:gr33nTea'", "gr33nTea"),
    ("sudo chpasswd <<EOF\nroot:Bl4ckTea\nops:gr33nTea\nEOF\n", "gr33nTea"),
    ("useradd -m -p Gr33nTea9 ops", "Gr33nTea9"),
    ("useradd -mp 'Gr33nTea9' ops", "Gr33nTea9"),
    ("useradd -m -p '$6$kq81$Xy7Zb0aQpLm3' ops", "$6$kq81$Xy7Zb0aQpLm3"),
    ("useradd -p $(openssl passwd -6 Gr33nTea9) ops", "Gr33nTea9"),
    ("usermod --password Gr33nTea9 ops", "Gr33nTea9"),
    ("passwd --stdin ops <<< Gr33nTea9", "Gr33nTea9"),
    ("sqlcmd -S db -U sa -P Gr33nTea9 -Q 'select 1'", "Gr33nTea9"),
    ("sqlplus scott/Gr33nTea9@db", "Gr33nTea9"),
    ("ipmitool -H 10.0.0.3 -U root -P Gr33nTea9 power status", "Gr33nTea9"),
    ("wpa_passphrase office Gr33nTea9", "Gr33nTea9"),
    ("net user ops Gr33nTea9 /add", "Gr33nTea9"),
    ("ALTER USER app WITH PASSWORD 'Gr33nTea9';", "Gr33nTea9"),
    ("create user app identified by 'Gr33nTea9'", "Gr33nTea9"),
    ('ConvertTo-SecureString "Gr33nTea9" -AsPlainText -Force', "Gr33nTea9"),
    ("ldapsearch -x -D cn=admin -w L1ghthouse -b dc=acme", "L1ghthouse"),
    ("smbclient //fs/share -U 'ops%P4nther' -c ls", "P4nther"),
    ("mongodump --username app -p 0rchid77", "0rchid77"),
    ("openssl enc -aes-256-cbc -pass pass:v3lvet -in a -out b", "v3lvet"),
    ("zip -P k1ttens out.zip a.txt", "k1ttens"),
    ("7z x backup.7z -pBa11oon", "Ba11oon"),
    ("keytool -list -keystore k.jks -storepass Cha1rlift", "Cha1rlift"),
    ("htpasswd -bc .htpasswd ops T0matoes", "T0matoes"),
    ("wget --user=ops --password=Sn0wdrop ftp://10.0.0.3/x", "Sn0wdrop"),
    ('curl -u "deploy:Tr0ub4dor" https://api.acme-corp.io', "Tr0ub4dor"),
    ("curl -su deploy:Tr0ub4dor https://api.acme-corp.io", "Tr0ub4dor"),
    ("curl --oauth2-bearer q8Zk20Lm4xPq77RtWn3b https://api.acme-corp.io", "q8Zk20Lm4xPq77RtWn3b"),
    ("twine upload -u ops -p Gr33nTea dist/*", "Gr33nTea"),
    ("cqlsh db -u ops -p Gr33nTea", "Gr33nTea"),
    ("ipmitool -H 10.0.0.3 -U ops -P Gr33nTea power status", "Gr33nTea"),
    ("xfreerdp /v:10.0.0.3 /u:ops /p:Gr33nTea", "Gr33nTea"),
    ("influx -username ops -password Gr33nTea", "Gr33nTea"),
    ("redis-cli AUTH Gr33nTea", "Gr33nTea"),
    ("unzip -PGr33nTea a.zip", "Gr33nTea"),
    ("printf 'Gr33nTea\\n' | sudo -S id", "Gr33nTea"),
    ("echo -e 'Gr33nTea\\nGr33nTea' | passwd ops", "Gr33nTea"),
    ("sudo -kS apt update <<< Gr33nTea", "Gr33nTea"),
    ("DB_PASS=Gr33nTea9 ./run.sh", "Gr33nTea9"),
    ("machine api.acme.io\n  login ci\n  password Gr33nTea\n", "Gr33nTea"),
    ("db.acme.io:5432:shop:app:Gr33nTea\n", "Gr33nTea"),
    ("<server><username>ci</username><password>Gr33nTea9</password></server>", "Gr33nTea9"),
    ('<add key="SmtpPassword" value="Gr33nTea9"/>', "Gr33nTea9"),
    ("- name: DB_PASSWORD\n  value: Gr33nTea9\n", "Gr33nTea9"),
    ('network={ ssid="home" psk="Gr33nTea9" }', "Gr33nTea9"),
    ("net use Z: \\\\files\\share Gr33nTea /user:ACME\\ops", "Gr33nTea"),
    ("kubectl create secret generic db --from-literal=password=Greentea", "Greentea"),
    ("ssh-keygen -t ed25519 -N Gr33nTea -f k", "Gr33nTea"),
    ("pdftk a.pdf output b.pdf user_pw Gr33nTea", "Gr33nTea"),
    *((f"wandb login {key}", key) for key in [_hex(40)]),
    (f"root:$6${_an(16)}${_an(86)}:19000:0:99999:7:::", "$6$"),
    (f"ops:$2y$10${_an(53)}", "$2y$"),
    ("ansible all -e ansible_become_pass=Gr33nTea9", "Gr33nTea9"),
]
SERVICES = [
    (f"token={value}", value)
    for value in (
        "lin_api_" + _an(40),
        "shpat_" + _hex(32),
        "PMAK-" + _hex(24) + "-" + _hex(34),
        "glc_" + base64.b64encode(f'{{"o":"1","n":"{_an(40)}"}}'.encode()).decode(),
        "rubygems_" + _hex(48),
        "pul-" + _hex(40),
        "tfp_" + _an(59),
        "dp.pt." + _an(43),
        "AKCp" + _an(69),
        "cmVmd" + _an(59),
        "LTAI" + _an(20),
        "4b1d" + _an(38, string.ascii_letters),
        "oy2" + _an(43).lower(),
        "fm2_" + _an(120),
        f"sat.{_an(22)}.{_hex(24)}.{_an(20)}",
        "pscale_tkn_" + _an(43),
        "hvs." + _an(95),
        "tvly-dev-" + _an(32),
        "Ab18Q~" + _an(34),
        f"sk.eyJ1Ijoi{_an(60)}.{_an(22)}",
    )
]
CONTROL = [
    (f"THOUGHT: done. {token} y", token)
    for token in (
        *("<|im_end|>", "<|tool_calls_section_begin|>", "<|eot_id|>", "<|channel|>", "<|endoftext|>", "<tool_call>"),
        *("[INST]", "[/INST]", "<<SYS>>", "<start_of_turn>", "<end_of_turn>", "<eos>", "<｜tool▁calls▁begin｜>"),
        *(
            "[TOOL_CALLS]",
            "<|start_header_id|>",
            "<fim_middle>",
            "<end_of_utterance>",
            *("<function_calls>", "<minimax:tool_call>", "<extra_id_0>"),
            "\u202e",
            "\u2066",
            "\U000e0041\U000e0042",
            "\x1b[31m",
            "\x1b]0;t",
            *("[gMASK]", "<sop>", "[|endofturn|]", "<SPECIAL_10>", "<reserved_106>", "[THINK]"),
            "\U000e0141\U000e0142",
            "\u200b\u200c" * 8,
        ),
    )
]

# Nothing is found in these.
HARMLESS = [
    "auth: oauthProviderConfig",
    "<s>old</s> <end_of_line> a[|b|] [MASK] [OPTIONS] [ARGS]",
    "می\u200cخواهم 葛\U000e0100城 ❤\ufe0f\u200d🔥 1\ufe0f\u20e3",
    '<label for="password">Passwort1</label> <input name="password" value="">',
    "- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef: db-credentials1\n",
    "main.c:5432:12: warning: unused; host:5432:shop:app:*",
    "<T extends Token>items: Promise<Token>",
    f'"auth": "{base64.b64encode(b"just a plain text").decode()}"',
    "git log --format=%h | rev | cut -c 1-20 | rev  # shortens_the_names_of_releases",
    "items.sort(key=internationalization_of_settings)[::-1]",
    "flags = 01000001 01000010 01000011",
    "nmcli connection modify Office wifi-sec.key-mgmt wpa-psk",
    "aws configure set region eu-west-1",
    "rabbitmqctl list_users",
    "ALTER USER app PASSWORD NULL;",
    "chr(65) + chr(66)",
    # words and hashes that look encoded
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "from internationalization.configuration import AbstractBaseConfigurationLoader",
    "/usr/lib/python3/dist-packages/setuptools/command/build_ext.py",
    "aGVsbG8gd29ybGQsIHRoaXMgaXMgYSB0ZXN0IG9mIGJhc2U2NA==",
    "68656c6c6f20776f726c642c20746869732069732061207465737420",
    "00000000: 7f45 4c46 0201 0100 0000 0000 0000 0000  .ELF",
    "printf '\\033[31mred\\033[0m\\n'",
    "grep -P '\\x1b\\[' log && echo 100%25 done",
    "x = 'a' + 'b' + 'some longer words' + str(n)",
    "https://acme.example.com/?q=caf%C3%A9%20au%20lait&amp;n=1",
    "print(''.join(['a', 'b', 'c']))",
    "naïve café — “quotes” and ｆｕｌｌ width",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    # commands without a password
    "curl -u $USER:$PASS https://api.acme-corp.io",
    "curl -u <user>:<password> https://api.acme-corp.io",
    'curl -u "$(cat user):$(cat pass)" https://x.acme-corp.io',
    "curl -u admin: https://api.acme-corp.io",
    "mysql -u root -p shop < dump.sql",
    'useradd -m -s /bin/bash -p "$HASH" ops',
    "useradd -p $(cat hash) ops && usermod -p '*' ops && usermod -aG docker ops",
    'echo "ops:$PASS" | chpasswd',
    "chpasswd < accounts.txt",
    "ALTER USER app WITH PASSWORD '$PASS'; identified by '<password>'",
    "net user ops * /add",
    "openssl passwd -6 -stdin < file",
    "the tool rot13 turns HelloWorldFromHere into UryybJbeyqSebzUrer",
    "base85 takes 4 bytes for 5 characters, such as git's 0123456789ABCDEFGHIJ does",
    "mysql -u root -p$MYSQL_PASS shop",
    "mysql -p${DB_PASSWORD} -h db",
    'sshpass -p "$PASS" ssh ops@10.0.0.3',
    "sshpass -p <password> ssh ops@10.0.0.3",
    "PGPASSWORD=$DB_PASS psql -h db",
    "PGPASSWORD=postgres psql -h localhost",
    "docker login -u ci --password-stdin registry < token",
    "docker run -p 8080:80 nginx",
    "mkdir -p build/output && cp -p a b",
    "redis-cli -a $REDIS_PASS ping",
    "tar -czf a.tgz -C /srv data && zip -r out.zip dir",
    "echo hello | sudo tee /etc/motd",
    "openssl enc -aes-256-cbc -pass env:SECRET -in a",
    "wget --password=<your password> ftp://10.0.0.3/x",
    "sudo -u postgres mkdir -p cache9 && sudo -u www-data cp -p a b1",
    "docker run -u 1000 -p 8080:80 nginx && psql -U app -p 5433",
    "mysql -u root -p shop9 < dump.sql",
    "tests_pass=4 first_pass=true second_pass = None",
    "echo done | passwd --status; kinit ops < /dev/null",
    "codes = [104, 101, 108, 108, 111, 32, 119, 111, 114, 108, 100, 44, 32, 116, 104, 101, 114, 101]",
    "00000000: 7573 6167 653a 2072 756e 205b 6f70 7469  usage: run [opti\n"
    "00000010: 6f6e 735d 0a00 0000 0000 0000 0000 0000  ons]............",
    "a=src; b=lib; cp -r $a$b out && echo ${a}${b}",
    "SLACK_TOKEN=xoxb-not-a-real-token",
    "it's the user's 'own' file, isn't it",
    "CFLAGS=-O2\nCFLAGS+=' -Wall'\nPATH=/usr/local/bin\nPATH+=:/opt/tools/bin\nPATH+=:$HOME/.cargo/bin\n",
    "OBJS := main.o parser.o\nOBJS += lexer.o\nOBJS += token_stream.o\n",
    "run: |\n  npm ci\n  pytest\nfiles: >-\n  setup.cfg\n  token_stream.py\n",
    "KEY=ghp_\nKEY+=your_personal_access_token_goes_here\nprintf '%s%s' secret_ token_name\n",
    "ansible-playbook site.yml --ask-pass --password-file ./vault",
    # text that only resembles control text
    "let xs = a |> List.map f <|> b",
    "if (a <| b |> c) { [INSTALL] }",
    "flags 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f and family 👨‍👩‍👧",
    "arr[TOOL] and <start> of <turn>, <end-of-turn/>",
]


SETS = {"encoded": ENCODED, "command lines": COMMANDS, "other services": SERVICES, "control text": CONTROL}


def finds(text: str, part: str) -> bool:
    start = text.index(part)
    return any(found.start < start + len(part) and start < found.end for found in scan(text))


@pytest.mark.parametrize("name", SETS)
def test_recall(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    cases: Sequence[tuple[str, str]] = SETS[name]
    missed = [text for text, part in cases if not finds(text, part)]
    with capsys.disabled():
        print(f"\n{name}: recall {1 - len(missed) / len(cases):.2f} of {len(cases)}", end=" ")
    assert len(missed) <= 0.05 * len(cases), missed


def test_nothing_is_found_in_harmless_text(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = {text: scan(text) for text in HARMLESS if scan(text)}
    with capsys.disabled():
        print(f"\nfalse alarms: {len(wrong)} of {len(HARMLESS)}", end=" ")
    assert wrong == {}


@pytest.mark.parametrize(("text", "part"), ENCODED)
def test_a_finding_is_in_the_text_as_it_is_and_a_mask_takes_the_value_away(text: str, part: str) -> None:
    masked = Masks().apply(text, scan(text), lambda _: True)
    assert KEY not in masked and all(view.text.count(KEY) == 0 for view in views(masked))
    assert [found for found in scan(masked) if text.count("@") == 0 and found.kind == "secret"] == []
    for found in scan(text):
        assert 0 <= found.start < found.end <= len(text)


def test_texts_that_are_scanned_together_have_the_findings_of_each_alone() -> None:
    texts = [*HARMLESS, *(text for cases in SETS.values() for text, _ in cases), "naïve 🙂", "x" * 5_000, ""]
    assert list(scan_each(texts)) == [scan(text) for text in texts]


def test_a_value_beside_an_encoded_one_keeps_its_place() -> None:
    text = f"x%20y {KEY} z%20"
    assert scan(text) == (ScanFinding("github-token", text.index(KEY), text.index(KEY) + len(KEY)),)


def test_a_service_key_after_other_letters_keeps_its_place() -> None:
    text, part = SERVICES[0]
    longer = f"naïve 🙂 {text}"
    (found,) = scan(longer)
    assert longer[found.start : found.end] == part


def test_scans_at_the_same_time_find_the_same() -> None:
    texts = [text for text, _ in SERVICES] * 20
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(scan, texts)) == [scan(text) for text in texts]
