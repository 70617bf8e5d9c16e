"""The labelled set of the scan: what counts as a secret or as personal data, and look-alikes that do not.

Keys are put together here, so that no scanner of repositories takes this file for a leak.
"""

import json
import random
import string
from collections.abc import Sequence
from pathlib import Path

from stdnum import luhn

_HERE = Path(__file__).parent
_rng = random.Random(12)
_ALNUM = string.ascii_letters + string.digits


def _of(alphabet: str, size: int) -> str:
    """Random characters with at least one digit, capital and small letter where the alphabet has them."""
    while True:
        value = "".join(_rng.choices(alphabet, k=size))
        groups = (string.digits, string.ascii_uppercase, string.ascii_lowercase)
        if all(set(value) & set(group) for group in groups if set(alphabet) & set(group)):
            return value


def _an(size: int) -> str:
    return _of(_ALNUM, size)


def _hex(size: int) -> str:
    return _of("0123456789abcdef", size)


_CONTEXTS = (
    "export KEY={}",
    "curl -H 'X-Key: {}' https://api.internal/v1",
    "I set it to {} and it works now.",
    '{{"value": "{}"}}',
    "{}",
    "Error: invalid credentials ({})\n",
    "THOUGHT: the log shows {}, so I go on.\n\n```bash\nls\n```",
)


def _in_context(values: Sequence[str]) -> list[tuple[str, str]]:
    return [(_CONTEXTS[number % len(_CONTEXTS)].format(value), value) for number, value in enumerate(values)]


_UP = string.ascii_uppercase + string.digits
_VENDORS = [
    *("AKIA" + _of(_UP, 16), "ASIA" + _of(_UP, 16), "AKIA" + _of(_UP, 16), "ABIA" + _of(_UP, 16)),
    *("ghp_" + _an(36), "gho_" + _an(36), "ghs_" + _an(36), "github_pat_" + _an(22) + "_" + _an(59)),
    *("glpat-" + _an(20), "glpat-" + _an(18) + "-x"),
    *("sk-" + _an(48), "sk-proj-" + _an(64), "sk-proj-" + _an(40) + "T3BlbkFJ" + _an(40), "sk-svcacct-" + _an(60)),
    *("sk-ant-api03-" + _an(93) + "AA", "sk-ant-admin01-" + _an(80), "sk-ant-oat01-" + _an(60)),
    *("AIza" + _an(35), "AIza" + _an(33) + "-x", "GOCSPX-" + _an(28), "ya29." + _an(60)),
    *("xoxb-" + _of(string.digits, 12) + "-" + _of(string.digits, 12) + "-" + _an(24), "xoxp-" + _an(40)),
    *("xapp-1-A0" + _an(30), "hooks.slack.com/services/T" + _of(_UP, 8) + "/B" + _of(_UP, 10) + "/" + _an(24)),
    *("sk_live_" + _an(24), "rk_live_" + _an(40), "sk_test_" + _an(24), "whsec_" + _an(32)),
    *("hf_" + _of(string.ascii_letters, 34), "hf_" + _an(34), "npm_" + _an(36), "dop_v1_" + _hex(64)),
    *("SG." + _an(22) + "." + _an(43), "pypi-AgEIcHlwaS5vcmc" + _an(80), "dckr_pat_" + _an(27), "dapi" + _hex(32)),
]

_ASSIGNED = [
    ("API_KEY={}", _an(32)),
    ("api_key: {}", _an(40)),
    ('"apiKey": "{}"', _an(39)),
    ("export SECRET_KEY='{}'", _of(_ALNUM + "!#%&*+-=?@^_", 50)),
    ("aws_secret_access_key = {}", _of(_ALNUM + "/+", 40)),
    ("AWS_SECRET_ACCESS_KEY={}", _of(_ALNUM + "/+", 40)),
    ("client_secret={}", _an(36)),
    ("clientSecret: '{}',", _an(36)),
    ('datadog_api_key = "{}"', _hex(32)),
    ("SIGNING_KEY={}", _hex(64)),
    ("auth_token: {}", _an(32)),
    ("ACCESS_TOKEN={}", _an(44)),
    ("refresh_token = '{}'", _an(48)),
    ("session_secret: {}", _an(30)),
    ("ENCRYPTION_KEY={}", _of(_ALNUM + "+/", 43) + "="),
    ("AccountKey={};EndpointSuffix=core.windows.net", _of(_ALNUM + "+/", 86) + "=="),
    ("TWILIO_AUTH_TOKEN={}", _hex(32)),
    ('  password: "{}"', "Tr0ub4dor&3"),
    ("DB_PASSWORD={}", "s3cr3tPa55w0rd9"),
    ("MYSQL_ROOT_PASSWORD: {}", "v8Kq2xW9"),
    ("password = '{}'", "hunter2!"),
    ("PGPASSWORD={} psql -h db", "x7Lm29Qa"),
    ("Server=sql1;Database=crm;User Id=sa;Password={};", "Zx81kQp7vv"),
    ("passwd: '{}'", "c0ffee-Bean$"),
    ("ADMIN_PWD={}", "wR4nGl3r"),
    ('passphrase: "{}"', "blue42horse!staple"),
    ("credential = '{}'", _an(28)),
    ("Authorization: Bearer {}", _an(40)),
    ("-H 'Authorization: token {}'", _hex(40)),
    ("authorization: Basic {}", _an(28)),
    ("x-api-key: {}", _an(36)),
    ('private_key = "{}"', _hex(64)),
    ("aws configure set aws_secret_access_key {}", _of(_ALNUM + "/+", 40)),
    ("mysqldump -u root --password {} shop", "hunter2Xy7"),
    ("curl-wrapper --api-key '{}' https://api.acme-corp.io", _an(32)),
]

_URLS = [
    (f"{scheme}://{user}:{{}}@{host}", password)
    for (scheme, host), (user, password) in zip(
        [
            ("postgres", "db.prod.acme-corp.io:5432/app"),
            ("postgresql+psycopg", "10.0.3.7/app"),
            ("mysql", "mysql.internal:3306/shop"),
            ("mongodb+srv", "cluster0.ab1cd.mongodb.net/test"),
            ("redis", "cache.prod:6379/0"),
            ("amqp", "mq.prod:5672/%2F"),
            ("https", "git.acme-corp.io/team/repo.git"),
            ("ftp", "files.acme-corp.io/in"),
            ("smtp", "mail.acme-corp.io:587"),
            ("https", "pypi.acme-corp.io/simple"),
        ]
        * 3,
        [
            *[("app", "kX9vTq2m"), ("reporting", "Sommer2024!"), ("svc_shop", "9f8a7b6c5d"), ("ada", "pa55-w0rd-x")],
            *[("default", "mK2pQ8wZ1r"), ("worker", "Rabb1t.Hole"), ("oauth2", _an(20)), ("upload", "Vx3!kkpw")],
            *[("notify", "a1b2c3d4e5"), ("deploy", "Q7w8E9r0"), ("owner", "tiger-Lily9"), ("rw", "nq84hfk2ls")],
            *[("root", "Br1ghtM00n"), ("analytics", "zeta~77~Om"), ("u123", "pl0verbird"), ("bot", "xy12AB34cd")],
            *[("ci", "glump-92-fern"), ("backup", "T4peDr1ve"), ("mail", "snd_5520_ok"), ("proxy", "upstream77Q")],
            *[("cms", "W1ldFl0wer"), ("sync", "0riginKey9"), ("etl", "d4taP1pe"), ("grafana", "Pan3lz-44")],
            *[("kafka", "Str3am1ng"), ("ldap", "cn-Bind-8812"), ("vault", "unS3al3d"), ("search", "ela5tic88x")],
            *[("queue", "f1f0-l1f0"), ("edge", "Gr33nH1ll5")],
        ],
        strict=True,
    )
]


def _private(kind: str, newline: str) -> str:
    body = newline.join(_of(_ALNUM + "+/", 64) for _ in range(4))
    return f"-----BEGIN {kind}-----{newline}{body}{newline}-----END {kind}-----"


_KINDS = ("RSA PRIVATE KEY", "PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY", "DSA PRIVATE KEY")
_BLOCKS = [
    *(_private(kind, newline) for kind in _KINDS for newline in ("\n", "\\n", "\r\n")),
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7v\n-----END RSA PRIVATE KEY-----",
    *(f"eyJ{_an(17 + n)}.eyJ{_an(40 + 3 * n)}.{_of(_ALNUM + '_-', 42)}x" for n in range(16)),
]

_PEOPLE = json.loads((_HERE / "people.json").read_text())
_EMAIL_CONTEXTS = (
    *("Author: Someone <{}>", "mail {} about it", "mailto:{}?subject=hi", '"email": "{}",', "Signed-off-by: A B <{}>"),
    *("{}, please review.", "# maintainer {}\n"),
)


def _card(prefix: str, size: int) -> str:
    body = prefix + _of(string.digits, size - len(prefix) - 1)
    return body + luhn.calc_check_digit(body)


def _spaced(card: str, sign: str) -> str:
    if len(card) == 15:
        return sign.join((card[:4], card[4:10], card[10:]))
    return sign.join(card[at : at + 4] for at in range(0, len(card), 4))


_CARDS = [
    *(_card("4539", 16) for _ in range(6)),
    *(_spaced(_card("4716", 16), sign) for sign in (" ", "-", " ", "-")),
    *(_card(prefix, 16) for prefix in ("5234", "5512", "2345", "2699")),
    *(_spaced(_card("5399", 16), sign) for sign in (" ", "-", " ", "-")),
    *(_card(prefix, 15) for prefix in ("3456", "3712")),
    *(_spaced(_card("3764", 15), sign) for sign in (" ", "-", " ")),
    *(_card(prefix, 16) for prefix in ("6011", "6445", "6512", "3528", "3566", "6222")),
    *(_spaced(_card("6011", 16), " "), _card("3056", 14), _card("3612", 14)),
]

_HOMES = (
    *("cd /home/{}/src", "/home/{}/.ssh/config", 'File "/Users/{}/code/app.py", line 3', "ls /Users/{}"),
    *("C:\\Users\\{}\\Desktop", '"cwd": "/home/{}/work"', "file:///home/{}/notes.txt"),
)

FOUND: dict[str, list[tuple[str, str]]] = {
    "key": _in_context(_VENDORS),
    "assignment": [(text.format(value), value) for text, value in _ASSIGNED],
    "url-password": [(text.format(value), value) for text, value in _URLS],
    "key block": _in_context(_BLOCKS),
    "email": [(_EMAIL_CONTEXTS[n % 7].format(value), value) for n, value in enumerate(_PEOPLE["email"])],
    "phone": [
        (f"call {value} today" if ":" not in value else value, value.partition(": ")[2] or value)
        for value in _PEOPLE["phone"]
    ],
    "iban": [
        (f"Pay to {_spaced(value, ' ') if n % 2 else value} by Friday", _spaced(value, " ") if n % 2 else value)
        for n, value in enumerate(_PEOPLE["iban"])
    ],
    "card": _in_context(_CARDS),
    "home": [(_HOMES[n % 7].format(value), value) for n, value in enumerate(_PEOPLE["name"])],
}

RULES_OF = {
    "key": {
        *("aws-key", "github-token", "gitlab-token", "anthropic-key", "openai-key", "google-key", "slack-token"),
        *("stripe-key", "huggingface-token", "service-token"),
    },
    "assignment": {"assigned-secret", "authorization"},
    "url-password": {"url-password"},
    "key block": {"private-key", "jwt"},
    "email": {"email"},
    "phone": {"phone"},
    "iban": {"iban"},
    "card": {"card"},
    "home": {"home-path"},
}

# Texts in which no rule may find anything, by the kind that they look like.
LOOK_ALIKES: dict[str, list[str]] = {kind: [] for kind in FOUND}
for _line in (_HERE / "look_alikes.jsonl").read_text().splitlines():
    _case = json.loads(_line)
    LOOK_ALIKES[_case["kind"]].append(_case["text"])
