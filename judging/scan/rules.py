"""The rules of the scan. A rule looks at a text only if the text may have a value of it (`judging.scan.likely`); its
pattern is linear.

Secrets of services are found by the kept rules of Kingfisher (`judging.scan.libraries`). Our own patterns go before
them: they name the commonest services, and find values that only their surroundings tell. Checksums and numbering plans
come from python-stdnum and phonenumbers.
"""

import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from judging.scan.commands import COMMANDS, find_command_passwords
from judging.scan.libraries import LONG_RUN, Span, find_cards, find_ibans, find_known_secrets, find_phones
from judging.scan.likely import CAPITALS, DIGITS, is_not_ascii, run_of
from judging.scan.placeholders import is_placeholder, is_random, is_sample_address, is_service_user, is_trivial_password

# Of ChatML, Harmony, Llama, Mistral, Gemma, DeepSeek, Kimi, Qwen, Seed, MiniMax, GLM, EXAONE, Nemotron and Baichuan.
_TOKEN = re.compile(
    r"<[|｜]/?[A-Za-z_▁][\w▁./:-]{1,60}(?:[ ][\w▁]{1,20}){0,2}[|｜]>"
    r"|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|CALL_ID|THINK|[gs]MASK)\]"
    r"|<</?SYS>>|\[\|(?:system|user|assistant|tool|endofturn)\|\]|</?(?:(?:start|end)_of_(?:turn|image|audio|video|utterance|role|text|thought)|[es]op"
    r"|SPECIAL_\d{1,3}|reserved_\d{1,3}|bos|eos|unused\d{1,3}|extra_id_\d{1,3}|fim_\w{1,10}|seed:\w{1,20}"
    r"|(?:\w{1,20}:)?(?:tool|function)_(?:calls?|responses?))>"
    r"|\]~!?b\[|\]~b\]|\[e~\[|◁/?think▷"
)
_ANCHORS = (
    *(
        "<|",
        "<｜",
        "INST]",
        "TOOL",
        "SYSTEM_PROMPT]",
        "SYS>>",
        "_of_",
        "<bos>",
        "<eos>",
        "<unused",
        "extra_id_",
        "fim_",
    ),
    *("CALL_ID]", "THINK]", "MASK]", "[|a", "[|e", "[|s", "[|t", "[|u", "sop>", "eop>", "<SPECIAL_", "<reserved_"),
    *("tool_", "function_", "seed:", "~b]", "[e~[", "think▷"),
)
# Characters of terminals: escape, its 8-bit form, bell and backspace.
_SIGNS = ("\x1b", "\x9b", "\x07", "\x08")
_TERMINAL = re.compile("[\x1b\x9b](?:\\[[0-9;?]{0,20}[A-Za-z])?|[\x07\x08]")
# Characters that turn the direction of a text, and those that show nothing: tags, two selectors of variants together,
# and many blanks without width. A flag of a region is an emoji with tags.
_HIDDEN = re.compile(
    "\U0001f3f4[\U000e0020-\U000e007e]{1,8}\U000e007f|(?P<hidden>[\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]+"
    "|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2,}|[\u200b-\u200d\u2060-\u2064\ufeff]{8,})"
)
# Runs of all of these, which are found faster.
_UNSEEN = re.compile(
    "[\u200b-\u200d\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff\U0001f3f4\U000e0000-\U000e007f\U000e0100-\U000e01ef]+"
)
# What such text contains, unless it is not ASCII.
CONTROLS = (*_ANCHORS, *_SIGNS)


def find_control_text(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans, of a text as it is: `\\033` in a command is text like any other."""
    if any(anchor in text for anchor in _ANCHORS):
        yield from (match.span() for match in _TOKEN.finditer(text))
    if any(sign in text for sign in _SIGNS):
        yield from (match.span() for match in _TERMINAL.finditer(text))
    if not text.isascii():
        for run in _UNSEEN.finditer(text):
            yield from (match.span() for match in _HIDDEN.finditer(text, *run.span()) if match["hidden"])


Kind = Literal["secret", "pii", "control"]
SECRET: Kind
PII: Kind
CONTROL: Kind
SECRET, PII, CONTROL = "secret", "pii", "control"


@dataclass(frozen=True, slots=True)
class Rule:
    """`find` yields the spans of the values. `mask` names the type of the value in a placeholder such as `<EMAIL>`.
    `anchors`, `lower` and `needs` are those of `judging.scan.likely`. `masked`: by default, exports replace the value
    instead of keeping the row out. A `control` value is text for a machine: it keeps a row out if an assistant says it,
    is only reported elsewhere, and is searched in texts that are not decoded.
    """

    name: str
    kind: Kind
    mask: str
    find: Callable[[str], Iterator[Span]]
    anchors: tuple[str, ...] = ()
    lower: bool = False
    needs: Callable[[str], object] | None = None
    masked: bool = False


def _token(pattern: str) -> Callable[[str], Iterator[Span]]:
    """Find a vendor's token: the pattern alone, with no letter or digit beside it, and no example."""
    compiled = re.compile(rf"(?<![A-Za-z0-9_]){pattern}(?![A-Za-z0-9])")

    def find(text: str) -> Iterator[Span]:
        for match in compiled.finditer(text):
            if not is_placeholder(match.group()):
                yield match.span()

    return find


_SK = re.compile(r"(?<![A-Za-z0-9_\-])sk-(?!ant-)(?:proj-|svcacct-|admin-|None-)?[A-Za-z0-9_\-]{20,250}")
_LONG_RUN = re.compile(r"[A-Za-z0-9_]{20}")


def _find_openai(text: str) -> Iterator[Span]:
    for match in _SK.finditer(text):
        key = match.group()
        # Names of styles and classes also begin with sk-, but have no long run with digits and capitals.
        random = any(c.isdigit() for c in key) and any(c.isupper() for c in key) and _LONG_RUN.search(key)
        if random and not is_placeholder(key):
            yield match.span()


_PRIVATE = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:\\[nr]|\s|[\w-]{1,20}: [^\n\\]{0,80}){0,12}"
    r"[A-Za-z0-9+/=]{16}[A-Za-z0-9+/=\s\\]{0,20000}(?:-----END [A-Z0-9 ]{2,40}-----|\.{3}|…)?"
    r"|\bPrivate-Lines: \d{1,3}\s{1,4}[A-Za-z0-9+/=]{16,70}(?:\s{1,4}[A-Za-z0-9+/=]{16,70}){0,60}"
)


def _find_private_keys(text: str) -> Iterator[Span]:
    return (match.span() for match in _PRIVATE.finditer(text) if not is_placeholder(match.group()[27:120]))


_URL_PASSWORD = re.compile(r"://[^\s:/?#@\[\]'\"<>`]{0,100}:(?P<value>[^\s/?#@'\"<>`]{3,200})@[\w\[]")


def _find_url_passwords(text: str) -> Iterator[Span]:
    for match in _URL_PASSWORD.finditer(text):
        value = match["value"]
        user = text[match.start() + 3 : match.start("value") - 1]
        if value != user and not is_trivial_password(value) and not value.startswith(("$", "{", "%", "(")):
            yield match.span("value")


_KEY_WORDS = ("api", "access", "auth", "private", "account", "signing", "encryption")
_NAMED = re.compile(
    r"(?:secret|token|bearer|passw(?:or)?d|passphrase|pwd|(?<=[_-])pass(?![a-z])|credential|(?:"
    + "|".join(_KEY_WORDS)
    + r")[_\-]?key)"
    r"[a-z0-9_\-]{0,20}+(?:[\"']?\]?(?:[^\S\n]{0,4}(?::=|=>|=|:)[^\S\n]{0,4}|(?P<space>[^\S\n]{1,4}(?!value\b)))|>"
    r"|[\"']?[\s,]{1,40}[\"']?value[\"']?\s{0,4}[:=]\s{0,4})(?P<quote>[\"'`]?)"
    r"(?=(?P<value>[^\s\"'`,;<>(){}\[\]]{6,200}))"
)
_NAME_BEFORE = re.compile(r"[\w.\-]{0,40}\Z")
_NAME_END = re.compile(r"[a-z0-9_\-]+")
_NAMED_ANCHORS = (
    *("secret", "token", "bearer", "passwd", "password", "passphrase", "pwd", "_pass", "-pass", "credential"),
    *(f"{word}{sign}key" for word in _KEY_WORDS for sign in ("", "_", "-")),
)
# Names of values that are public, or that a server hands out for paging.
_PUBLIC_NAME = re.compile(
    r"(?:^|[_.\-])(?:next|starting|page|continuation|cursor|sync|resume|csrf|xsrf|pad|eos|bos|public|max|min|num|count|id_?|sha\d*|digest|hash"
    r"|checksum|etag|policy|hint|reset_url|field|label|column|name|env|var|file|path|url|uri|type|ttl|expir\w*|length|stdin"
    r"|format|regex|pattern)(?:[_\-.]?(?:token|key|secret|password|passwd|pwd))?s?$"
)
_PASSWORD = re.compile(r"passw|passphrase|pwd|[_-]pass$")
_CODE = re.compile(r"[A-Za-z_][\w]*(?:\.[A-Za-z_]\w*)+|[/~.][\w./\-]*|[A-Za-z_]+|\d+(?:\.\d+)*|--?[\w\-]+")
_DIGEST = re.compile(r"(?:sha\d+|md5)[:\-].*|data:image.*", re.IGNORECASE)


def _find_assignments(text: str) -> Iterator[Span]:
    """Find values that are given to a name such as `api_key`: a password, or a string that looks random."""
    lower = text.lower()
    if len(lower) != len(text):  # a few letters change their length
        lower = "".join(c if len(low := c.lower()) != 1 else low for c in text)
    for match in _NAMED.finditer(lower):
        start, end = match.span("value")
        value = text[start:end].rstrip(".\\")
        if _CODE.fullmatch(value) or _DIGEST.match(value):
            continue
        name = _name_of(lower, match.start())
        # A command takes the value as its next word: `--password …`, or the name of a setting. In prose it is a word.
        if _PUBLIC_NAME.search(name) or (match["space"] and not (name.startswith("--") or "_" in name)):
            continue
        if is_random(value) or (_PASSWORD.search(name) and _is_password(value, quoted=bool(match["quote"]))):
            yield start, start + len(value)


def _name_of(lower: str, at: int) -> str:
    """Return the whole name around the word at `at`, such as `github_api_key`."""
    before, after = _NAME_BEFORE.search(lower[max(0, at - 40) : at]), _NAME_END.match(lower, at)
    return (before.group() if before else "") + (after.group() if after else "")


def _is_password(value: str, *, quoted: bool) -> bool:
    """A word of code has one kind of character; a password has at least two, one of them a digit or a sign."""
    if is_trivial_password(value) or value.startswith(("$", "%", "/", "&", "*", "@", "!", "|", "\\")):
        return False
    letters, digits = any(c.isalpha() for c in value), any(c.isdigit() for c in value)
    signs = any(not c.isalnum() and c not in "_-.:/" for c in value)
    return letters and (digits or signs) if quoted else letters and digits and ":" not in value


_AUTHORIZATION = re.compile(
    r"(?:authorization|x-api-key)[\"']?[^\S\n]{0,3}[:=][^\S\n]{0,3}[\"']?(?:(?:bearer|basic|token)[^\S\n]{1,3})?"
    r"(?P<value>[A-Za-z0-9._~+/=\-]{16,2000})",
    re.IGNORECASE,
)


# A user and a password as base64, in the files of docker and npm.
_ENCODED_PAIR = re.compile(
    r"auth[\"']?[^\S\n]{0,3}[:=][^\S\n]{0,3}[\"']?(?:basic[^\S\n]{1,3})?(?P<value>[A-Za-z0-9+/]{12,400}={0,2})"
    r"(?![\w+/=.-])",
    re.IGNORECASE,
)
_PAIR = re.compile(rb"[\w.@+-]{1,60}:[\x21-\x7e]{6,200}")


def _find_authorizations(text: str) -> Iterator[Span]:
    yield from (match.span("value") for match in _AUTHORIZATION.finditer(text) if is_random(match["value"]))
    yield from (match.span("value") for match in _ENCODED_PAIR.finditer(text) if _is_pair(match["value"]))


def _is_pair(value: str) -> bool:
    plain = value.rstrip("=")
    return len(plain) % 4 != 1 and _PAIR.fullmatch(binascii.a2b_base64(plain + "=" * (-len(plain) % 4))) is not None


_DOMAIN = re.compile(r"@((?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})\.){1,8}[A-Za-z]{2,24})(?![\w-]|\.\w)")
_LOCAL = re.compile(r"[A-Za-z0-9][\w.+\-]{0,63}\Z")
_REMOTE_SHELL = re.compile(r"\b(?:ssh|scp|sftp|rsync|mosh)\b[^\n]{0,80}\Z")


def _find_addresses(text: str) -> Iterator[Span]:
    for match in _DOMAIN.finditer(text):
        at = match.start()
        before = text[max(0, at - 64) : at]
        local = _LOCAL.search(before.rpartition(" ")[2].rpartition("\n")[2])
        if local is None or is_sample_address(local.group(), match[1]):
            continue
        start = at - len(local.group())
        line = text[max(0, start - 100) : start]
        in_url = re.search(r"://[^\s/]*\Z", line) is not None
        remote = text[match.end() : match.end() + 1] == ":" and text[match.end() + 1 : match.end() + 2] in ("/", "~")
        if not in_url and not remote and not _REMOTE_SHELL.search(line):
            yield start, match.end()


_HOME = re.compile(
    r"(?:(?<![\w/.~$}\-])|(?<=file://))/(?:home|Users)/(?P<name>[A-Za-z_][\w.\-]{1,31})(?=[/\s\"'`:;,)\]>|\\]|$)"
    r"|(?<![A-Za-z])[A-Za-z]:\\{1,2}Users\\{1,2}(?P<windows>[A-Za-z_][\w.\-]{1,31})(?=[\\\s\"'`;,)]|$)"
)


def _find_homes(text: str) -> Iterator[Span]:
    for match in _HOME.finditer(text):
        group = "name" if match["name"] else "windows"
        if not is_service_user(match[group].rstrip(".")):
            yield match.span(group)


RULES: tuple[Rule, ...] = (
    Rule("private-key", SECRET, "PRIVATE_KEY", _find_private_keys, ("PRIVATE KEY", "Private-Lines: ")),
    Rule(
        "aws-key",
        SECRET,
        "AWS_KEY",
        _token(r"(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}"),
        ("AKIA", "ASIA", "ABIA", "ACCA", "A3T"),
    ),
    Rule(
        "github-token",
        SECRET,
        "GITHUB_TOKEN",
        _token(r"(?:gh[pousr]_[A-Za-z0-9]{36,251}|github_pat_[A-Za-z0-9_]{22,251})"),
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    ),
    Rule("gitlab-token", SECRET, "GITLAB_TOKEN", _token(r"gl(?:pat|dt|ft|soat|rt|ptt)-[\w\-]{20,60}"), ("gl",)),
    Rule("anthropic-key", SECRET, "ANTHROPIC_KEY", _token(r"sk-ant-[A-Za-z0-9_\-]{20,250}"), ("sk-ant-",)),
    Rule("openai-key", SECRET, "OPENAI_KEY", _find_openai, ("sk-",)),
    Rule(
        "google-key",
        SECRET,
        "GOOGLE_KEY",
        _token(r"(?:AIza[A-Za-z0-9_\-]{35}|GOCSPX-[A-Za-z0-9_\-]{28}|ya29\.[A-Za-z0-9_\-]{30,250})"),
        ("AIza", "GOCSPX-", "ya29."),
    ),
    Rule(
        "slack-token",
        SECRET,
        "SLACK_TOKEN",
        _token(
            r"(?:xox[abeoprs]-(?=[A-Za-z-]{0,60}\d)(?:\d{1,14}-)?[A-Za-z0-9\-]{10,250}|xapp-\d-[A-Za-z0-9\-]{20,250}"
            r"|hooks\.slack\.com/services/T[A-Z0-9]{6,14}/B[A-Z0-9]{6,14}/[A-Za-z0-9]{16,40})"
        ),
        ("xox", "xapp-", "hooks.slack.com"),
    ),
    Rule(
        "stripe-key",
        SECRET,
        "STRIPE_KEY",
        _token(r"(?:[sr]k_(?:live|test)_[A-Za-z0-9]{16,250}|whsec_[A-Za-z0-9+/]{24,90})"),
        ("k_live_", "k_test_", "whsec_"),
    ),
    Rule("huggingface-token", SECRET, "HF_TOKEN", _token(r"(?:hf|api_org)_[A-Za-z0-9]{30,60}"), ("hf_", "api_org_")),
    Rule(
        "service-token",
        SECRET,
        "TOKEN",
        _token(
            r"(?:npm_[A-Za-z0-9]{36}|pypi-Ag[A-Za-z0-9_\-]{50,250}|SG\.[\w\-]{22}\.[\w\-]{43}|dop_v1_[a-f0-9]{64}"
            r"|dckr_pat_[\w\-]{27}|dapi[a-f0-9]{32}|glsa_[A-Za-z0-9_]{32,60}|AGE-SECRET-KEY-1[A-Z0-9]{58}"
            r"|(?:bot)?\d{8,10}:AA[\w\-]{33}|AKCp[A-Za-z0-9]{69}|cmVmd[A-Za-z0-9]{59}|LTAI[A-Za-z0-9]{20}"
            r"|4b1d(?=[a-z\d]*[A-Z])[A-Za-z0-9]{38}|oy2[a-z0-9]{43}|fm[12][ar]?_[A-Za-z0-9+/]{100,4000}"
            r"|[ps]at\.[\w\-]{22}\.[0-9a-zA-Z]{24}\.[A-Za-z0-9]{20}|pscale_(?:tkn|oauth|pw)_[\w.=\-]{32,64}"
            r"|hv[sb]\.[\w\-]{60,400}|tvly-(?:dev-|prod-)?[A-Za-z0-9\-]{32}|[\w~.]{3}\dQ~[\w~.\-]{31,34}"
            r"|sk\.eyJ[\w\-]{40,200}\.[\w\-]{20,40}|discord(?:app)?\.com/api/webhooks/\d{17,20}/[\w\-]{60,80})"
        ),
        (
            *("npm_", "pypi-Ag", "SG.", "dop_v1_", "dckr_pat_", "dapi", "glsa_", "AGE-SECRET-KEY", ":AA", "AKCp"),
            *("cmVmd", "LTAI", "4b1d", "oy2", "fm1", "fm2", "pat.", "sat.", "pscale_", "hvs.", "hvb.", "tvly-", "Q~"),
            *("sk.eyJ", "/api/webhooks/"),
        ),
    ),
    Rule(
        "jwt",
        SECRET,
        "JWT",
        _token(r"(?<![.\-])eyJ[A-Za-z0-9_\-]{8,4000}\.eyJ[A-Za-z0-9_\-]{8,8000}\.[A-Za-z0-9_\-]{16,2000}"),
        ("eyJ",),
    ),
    Rule("url-password", SECRET, "PASSWORD", _find_url_passwords, ("://",)),
    Rule("authorization", SECRET, "TOKEN", _find_authorizations, ("auth", "x-api-key"), lower=True),
    Rule("assigned-secret", SECRET, "SECRET", _find_assignments, _NAMED_ANCHORS, lower=True),
    Rule("command-password", SECRET, "PASSWORD", find_command_passwords, COMMANDS),
    Rule("email", PII, "EMAIL", _find_addresses, ("@",), masked=True),
    Rule("iban", PII, "IBAN", find_ibans, needs=run_of(CAPITALS + DIGITS, 12, " ")),
    Rule("card", PII, "CARD", find_cards, needs=run_of(DIGITS, 13, " -")),
    Rule("phone", PII, "PHONE", find_phones, needs=run_of(DIGITS + "+", 8, " .()/-"), masked=True),
    Rule("home-path", PII, "USER", _find_homes, ("/home/", "/Users/", "\\Users\\"), masked=True),
    Rule("known-secret", SECRET, "SECRET", find_known_secrets, ("A3-",), needs=LONG_RUN),
    # Last, because the colours of a terminal may touch an address.
    Rule("control-text", CONTROL, "CONTROL", find_control_text, CONTROLS, needs=is_not_ascii),
)
BY_NAME = {rule.name: rule for rule in RULES}
