"""Passwords on command lines: an option or a variable of a program that takes one."""

import re
from collections.abc import Iterator

from judging.scan.placeholders import is_trivial_password

# A word of a shell, in quotes or bare.
_WORD = r"(?:\"(?P<{0}a>[^\"\n]{{3,200}})\"|'(?P<{0}b>[^'\n]{{3,200}})'|(?P<{0}c>[^\s\"'|;&<>()`]{{3,200}}))"
# Programs that read a password from their input.
_READS = r"(?:sudo\s+-\w*S\b|(?:docker|podman)\s+login|passwd\b(?!\s+-(?!-stdin))|gh\s+auth\s+login|kinit\b|su\s)"
_BETWEEN = r"[^\n|;&]{0,200}?\s"


def _option(programs: str, options: str, name: str) -> str:
    """`options` of `programs`, with a word after them."""
    return rf"\b(?:{programs})\b{_BETWEEN}(?:{options}){_WORD.format(name)}"


# After user and colon, or user and percent sign.
_USER = re.compile(
    r"\b(?:curl|wget|http|https|xh|etcdctl)\b[^\n|;&]{0,200}?\s(?:-[a-zA-Z]{0,6}[uUa]|--user|--proxy-user|--auth)[\s=]{0,3}(?P<quote>[\"'])?"
    r"(?P<user>[^\s:\"'$<>]{1,100}):(?P<value>(?(quote)[^\"'\n]{3,200}|[^\s\"'|;&<>]{3,200}))"
    r"|\b(?:smbclient|rpcclient|net|cadaver|lftp)\b[^\n|;&]{0,200}?\s(?:-U|--user|-u)[\s=]{0,3}[\"']?"
    r"[^\s%,\"'$<>]{1,100}[%,](?P<after>[^\s\"'|;&<>]{3,200})"
    r"|\b(?:echo|printf)\s+(?:-\w+\s+)?[\"']?[a-z_][\w-]{0,31}:(?P<changed>[^\s\"'|;&<>$\\]{3,200})(?:\\n)?[\"']?\s*\|\s*"
    r"(?:sudo\s+)?chpasswd"
    r"|\bchpasswd\b[^\n|;&<]{0,100}<<<\s*[\"']?[a-z_][\w-]{0,31}:(?P<given>[^\s\"'|;&<>$]{3,200})"
    r"|\bsqlplus\b[^\n|;&]{0,100}?\s[\"']?[a-zA-Z_]\w{0,30}/(?P<oracle>[^\s\"'|;&<>$@/]{3,200})@"
)
# The lines below `chpasswd <<EOF`.
_HERE = re.compile(
    r"\bchpasswd\b[^\n|;&<]{0,100}<<-?\s*[\"']?\w+[^\n]{0,100}\n"
    r"(?P<lines>(?:[ \t]*[a-z_][\w-]{0,31}:[^\s:]{3,200}\n){1,100})"
)
_ACCOUNT = re.compile(r"[a-z_][\w-]{0,31}:(?P<value>\S+)")
# Entries of .netrc, on one line or several, and of .pgpass and the files with the hashes of passwords.
_NETRC = re.compile(r"\bmachine\s+\S{1,200}\s+login\s+\S{1,100}\s+password\s+(?P<value>\S{3,200})")
_ENTRY = re.compile(
    r"^[\w.*-]{1,200}:(?:\d{4,5}|\*):[\w.*-]{1,60}:[\w.*-]{1,60}:(?P<pgpass>[^\s:]{4,200})$"
    r"|^[a-z_][\w.-]{0,31}:(?P<hash>\$(?:[1567]|2[abxy]|y|gy|apr1|sha1)\$[\w./$,=]{20,200})",
    re.MULTILINE,
)
_OPTIONS = re.compile(
    "|".join(
        (
            # The value stands at once after -p: a word after a blank is the name of a database.
            _option(r"mysql|mysqldump|mysqladmin|mysqlimport|mariadb|mariadb-dump", r"-p(?![\s=])|--password=", "m"),
            _option(r"7z|7za|7zr|rar|unrar", r"-p(?![\s=])|-hp(?![\s=])", "z"),
            _option(r"sshpass", r"-p\s*", "s"),
            _option(r"redis-cli", r"-a\s+|--pass\s+|AUTH\s+", "r"),
            _option(r"ldapsearch|ldapmodify|ldapadd|ldapwhoami", r"-w\s+", "l"),
            _option(r"zip|unzip", r"-P\s*", "p"),
            _option(r"useradd|usermod|adduser", r"-\w*p\s+|--password[=\s]", "u"),
            _option(r"sqlcmd|bcp|osql|ipmitool|isql|mssql-cli|ssh-keygen", r"-[NP]\s*", "t"),
            _option(r"pscp|plink|psftp", r"-pw\s+", "plink"),
            _option(r"ldappasswd", r"-s\s+", "ldappasswd"),
            _option(r"snmpwalk|snmpget|snmpset|snmpbulkwalk", r"-A\s+|-X\s+", "snmp"),
            _option(r"nmcli", r"(?:password|wifi-sec\.psk)\s+", "nmcli"),
            rf"\bmysqladmin\b{_BETWEEN}password\s+{_WORD.format('admin')}",
            r"\b(?:rabbitmqctl\s+(?:add_user|change_password)\s+\S{1,100}|wandb\s+login"
            rf"|gh\s+secret\s+set\s[^\n|;&]{{0,100}}?(?:-b|--body))\s+{_WORD.format('rabbit')}",
            rf"\bnet\s+use\s+(?:\S{{1,200}}\s+){{1,2}}{_WORD.format('share')}(?=\s+/user:)",
            rf"\baws\s+configure\s+set\s+aws_(?:secret_access_key|session_token)\s+{_WORD.format('aws')}",
            rf"\bcryptsetup\b[^\n|;&<]{{0,200}}<<<\s*{_WORD.format('disk')}",
            rf"\bopenssl\s+passwd\s+(?:-\w+\s+(?:(?<=-salt\s)\S+\s+)?)*{_WORD.format('x')}",
            rf"\bwpa_passphrase\s+\S+\s+{_WORD.format('y')}",
            rf"\bnet\s+user\s+[\w.-]{{1,60}}\s+{_WORD.format('d')}",
            rf"\bConvertTo-SecureString\s+(?:-String\s+)?{_WORD.format('f')}",
            r"\b(?i:(?:with|user\s+\S{1,80}|role\s+\S{1,80})\s+(?:encrypted\s+)?password|identified\s+by)\s+"
            r"'(?P<sql>[^'\n]{3,200})'",
            _option(r"openssl", r"(?:-passin|-passout|-pass)\s+pass:|-k\s+", "o"),
            _option(r"keytool", r"-(?:storepass|keypass)\s+", "k"),
            _option(r"htpasswd", r"-\w*b\w*\s+\S+\s+\S+\s+", "h"),
            rf"\b(?:echo|printf)\s+(?:-\w+\s+)?{_WORD.format('e')}\s*\|\s*(?:sudo\s+)?{_READS}",
            rf"\b{_READS}[^\n|;&<]{{0,200}}<<<\s*{_WORD.format('i')}",
            r"\s(?:--?(?:[a-z]{2,10}-)?(?:password|passwd|passphrase|pass)|(?:user|owner|input)_pw"
            rf"|--from-literal[=\s][\w.-]{{0,40}}(?:pass|secret|token|key)[\w.-]{{0,20}})(?:=|\s+){_WORD.format('w')}",
        )
    )
)
# A user and, at once after it, a password. After the `-p` of MySQL's programs and a blank comes a database.
_PAIR = re.compile(
    r"(?<!\S)(?:-u|-U|--user(?:name)?|/u:|-l|--login)[\s=]{0,3}[\"']?[\w.@\\-]{1,100}[\"']?\s+(?:-p\s*|-P\s*|/p:)"
    + _WORD.format("q")
)
_NO_PASSWORD = re.compile(r"\b(?:mysql|mariadb)\w*\b[^\n|;&]{0,200}\Z")
_VARIABLES = re.compile(
    r"(?<![\w$])(?:PGPASSWORD|MYSQL_PWD|MYSQL_ROOT_PASSWORD|MYSQL_PASSWORD|POSTGRES_PASSWORD|SSHPASS|REDISCLI_AUTH"
    rf"|LDAPPASSWD|SQLCMDPASSWORD|MONGO_INITDB_ROOT_PASSWORD|RSYNC_PASSWORD|BORG_PASSPHRASE|RESTIC_PASSWORD|psk)={_WORD.format('v')}"
)
_HASHES = (":$1$", ":$5$", ":$6$", ":$7$", ":$2", ":$y$", ":$gy$", ":$apr1$", ":$sha1$")
_ENTRIES = ((_NETRC, ("machine ",)), (_ENTRY, (":5432:", ":*:", *_HASHES)))
# What the lines with such passwords contain.
COMMANDS = (
    *("curl", "wget", "http ", "https ", "xh ", "smbclient", "rpcclient", "lftp", "cadaver", "chpasswd", "mysql"),
    *("mariadb", "sshpass", "redis-cli", " login", "ldap", "zip ", "7z", "rar ", "openssl", "keytool", "htpasswd"),
    *("sudo -", "passwd", "kinit", "--pass", "-pass", " -p", " -P", "/p:", "PGPASSWORD", "MYSQL_", "SSHPASS"),
    "POSTGRES_PASSWORD",
    *("etcdctl", "plink", "pscp", "psftp", "snmp", "nmcli", "rabbitmqctl", "net use", "aws configure", "cryptsetup"),
    *("useradd", "usermod", "adduser", "sqlplus", "sqlcmd", "bcp ", "osql", "isql", "ipmitool", "wpa_passphrase"),
    *("net user", "ConvertTo-Sec", "PASSWORD '", "password '", "IDENTIFIED BY", "identified by"),
    *('psk="', "ssh-keygen", "_pw ", "--from-literal", "secret set", "wandb", "\nlogin", ":5432:", *_HASHES, ":*:"),
    *("REDISCLI_AUTH", "LDAPPASSWD", "SQLCMDPASSWORD", "_PASSPHRASE", "C_PASSWORD", "_ROOT_PASSWORD"),
)
_BESIDE = ("quote", "user")
# The hash of a password, as `/etc/shadow` has it, is no variable.
_HASH = re.compile(r"\$(?:[1-7]|2[abxy]|y|gy|apr1|sha1)\$")
# A variable, a substitution, or something to fill in.
_FILLED_LATER = ("$", "<", "{", "%", "`", "@", "-", "*", "[", "...", "/", "file:", "env:")


_LONGEST_LINE = 1_000


def find_command_passwords(text: str) -> Iterator[tuple[int, int]]:
    found: dict[tuple[int, int], None] = {}
    for start, end in _lines(text):
        for pattern in (_USER, _OPTIONS, _VARIABLES):
            for match in pattern.finditer(text, start, end):
                name = next(name for name, value in match.groupdict().items() if value and name not in _BESIDE)
                value = match[name]
                if _is_password(value):
                    found[match.span(name)] = None
        for match in _PAIR.finditer(text, start, end):
            value = match["qa"] or match["qb"] or match["qc"]
            is_port = ":" in value or not any(c.isalpha() for c in value)
            if is_port or value.startswith(_FILLED_LATER) or is_trivial_password(value):
                continue
            if _NO_PASSWORD.search(text, start, match.start()) is None:
                found[match.span(match.lastgroup or 0)] = None
    for pattern, anchors in _ENTRIES:
        for entry in pattern.finditer(text) if any(anchor in text for anchor in anchors) else ():
            if _is_password(entry[entry.lastgroup or 0]):
                found[entry.span(entry.lastgroup or 0)] = None
    for match in _HERE.finditer(text) if "chpasswd" in text else ():
        for account in _ACCOUNT.finditer(text, *match.span("lines")):
            if _is_password(account["value"]):
                found[account.span("value")] = None
    return iter(found)


def _is_password(value: str) -> bool:
    is_filled_later = value.startswith(_FILLED_LATER) or "$(" in value
    return _HASH.match(value) is not None or not (is_filled_later or is_trivial_password(value))


def _lines(text: str) -> Iterator[tuple[int, int]]:
    """Yield the lines with an anchor. Of a very long line, what follows the anchor."""
    seen = -1
    places = sorted(place for anchor in [one for one in COMMANDS if one in text] for place in _places(text, anchor))
    for place in places:
        if place >= seen:
            start = max(text.rfind("\n", 0, place) + 1, place - _LONGEST_LINE)
            end = text.find("\n", place, place + _LONGEST_LINE)
            seen = end if end >= 0 else min(len(text), place + _LONGEST_LINE)
            yield start, seen


def _places(text: str, anchor: str) -> Iterator[int]:
    place = text.find(anchor)
    while place >= 0:
        yield place
        place = text.find(anchor, place + len(anchor))
