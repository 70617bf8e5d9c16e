"""Find in the texts of a checker and a reference that the verdict does not depend on the state alone.

Each finding names the line. Dependences that the texts do not show are found by `sandbox.gate.checker_tests`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from judging.shell.words import ShellToken, tokens
from sandbox.gate.report import Check, GateFinding, ReportLine
from sandbox.protocol import HOME, ROOTS, Setup

_LEADS = frozenset({"do", "then", "else", "elif", "!", "time", "if", "while", "until", "{"})
_WRAPPERS = frozenset(
    {"env", "command", "exec", "timeout", "nice", "xargs", "sudo", "nohup", "setsid", "stdbuf", "busybox"}
)
_SHELLS = frozenset({"sh", "dash", "bash", "ash", "busybox"})
_RUNS_FILE = _SHELLS | {".", "source", "awk", "gawk", "mawk", "sed", "perl", "python3", "python", "make", "bc", "ed"}
_EXECS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_FUNCTION = re.compile(r"(?m)(?:^|[;{]|&&)\s*(\w+)\s*\(\)")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=", re.DOTALL)
_OWN_PROGRAMS = re.compile(rf"PATH=(?:.*:)?(?:{'|'.join(ROOTS)}|~|\$\{{?HOME\b|\$\{{?PWD\b|\.(?:[:/]|$)|:|$)")
_ABSOLUTE_DATE = re.compile(r"(?:-d|--date=?|-r|--reference=?)\s*(?:@|\d{4}-|/|\$|$)")
_PROGRAMS: Mapping[str, frozenset[str]] = {
    "the clock": frozenset({"date", "uptime", "cal", "ncal", "hwclock", "timedatectl", "who", "w", "last"}),
    "random numbers": frozenset({"shuf", "uuidgen", "mcookie"}),
    "the network": frozenset(
        [
            "curl",
            "wget",
            "nc",
            "ncat",
            "netcat",
            "telnet",
            "ssh",
            "scp",
            "sftp",
            "ftp",
            "rsync",
            "ping",
            "dig",
            "host",
            "nslookup",
            "getent",
            "ip",
            "ifconfig",
            "ss",
            "netstat",
        ]
    ),
    "the process table": frozenset(
        [
            "ps",
            "pgrep",
            "pidof",
            "pkill",
            "kill",
            "killall",
            "top",
            "htop",
            "pstree",
            "fuser",
            "lsof",
            "jobs",
            "pwdx",
            "pmap",
        ]
    ),
    "the machine's name": frozenset({"hostname", "hostnamectl"}),
}
# Anywhere in a command, quoted or not.
_TEXTS: Mapping[str, re.Pattern[str]] = {
    "the clock": re.compile(
        r"\$\{?(?:SECONDS|EPOCHSECONDS|EPOCHREALTIME)\b|/proc/uptime|\b(?:systime|strftime)\s*\(|\blocaltime\b|\bgmtime\b"
        r"|\bstat\b[^|;&]*%[wWxXyYzZ]|-printf\b[^|;&]*%[ACT]|%\([^)]*\)T|\bdatetime\b|\btime\.time\b|(?<!\S)-(?:[acm]min|[acm]time|newer[aBcm]t)\b"
    ),
    "random numbers": re.compile(r"\$\{?S?RANDOM\b|/dev/u?random|/proc/sys/kernel/random|\bs?rand\s*\("),
    "the network": re.compile(r"/dev/(?:tcp|udp)/|/proc/net\b"),
    "the process table": re.compile(r"/proc/(?:\d|\$|\*|\[|\?)"),
    "the machine's name": re.compile(r"/etc/hostname|/proc/sys/kernel/hostname|\$\{?HOSTNAME\b"),
}
_IN_PROGRAM = re.compile(r"\bsystem\s*\(\s*\"([^\"]*)\"|\"([^\"]*)\"\s*\|\s*getline|\|\s*\"([^\"]*)\"")


@dataclass(frozen=True, slots=True)
class _Command:
    """A simple command: where it begins, its words, and whether it reads the pipe of the program `piped_from`."""

    at: int
    words: tuple[str, ...]
    raw: str
    piped_from: str = ""


def findings_of(checker: str, reference: str, setup: Setup) -> list[GateFinding]:
    """Return failed checks, each with the line that it is about."""
    found: dict[tuple[str, int], GateFinding] = {}
    own = frozenset(_FUNCTION.findall(checker))
    scripts = {file.path for file in setup.fixtures}
    for command in _commands(checker):
        line = checker.count("\n", 0, command.at) + 1
        for what, shown in _read_by(command, own):
            found.setdefault((what, line), finding_at(f"the checker reads {what}", "checker", checker, line, shown))
        for path in _programs_run(command, scripts):
            text = f"the checker runs {path}, which the agent may write"
            found.setdefault((path, line), finding_at(text, "checker", checker, line, " ".join(command.words), path))
    for at, shown in _search_paths(checker):
        line = checker.count("\n", 0, at) + 1
        text = "the checker runs programs of a folder that the agent may write"
        found.setdefault(("PATH", line), finding_at(text, "checker", checker, line, shown))
    for at, shown in _background(reference):
        line = reference.count("\n", 0, at) + 1
        text = "the reference leaves work to a background process"
        found.setdefault(("background", line), finding_at(text, "reference", reference, line, shown))
    return list(found.values())


def finding_at(what: str, script: str, text: str, line: int, shown: str, path: str = "") -> GateFinding:
    """Return a failed check that shows a line of a script."""
    source = text.splitlines()[line - 1].strip() if line <= len(text.splitlines()) else shown
    advice = (
        "Wait for it with `wait`." if script == "reference" else "Let the verdict depend on the agent's results alone."
    )
    reason = f"line {line} of the {script}: `{source[:200]}`. {advice}"
    return GateFinding(Check(what, False, reason, (ReportLine(f"# line {line} of the {script}\n{source}"),)), path)


def _read_by(command: _Command, own: frozenset[str]) -> Iterator[tuple[str, str]]:
    names = _names(command.words)
    for what, programs in _PROGRAMS.items():
        for name in (names & programs) - own:
            if name != "date" or not _is_absolute_date(command.words):
                yield what, name
    for what, pattern in _TEXTS.items():
        if match := pattern.search(command.raw):
            yield what, match[0]
    flags = "".join(word[1:] for word in command.words[1:] if re.fullmatch(r"-\w+", word))
    if "uname" in names and (set(flags) & {"a", "n"}):
        yield "the machine's name", "uname"
    if "sort" in names and ("R" in flags or "--random-sort" in command.words):
        yield "random numbers", "sort -R"
    if "ls" in names and (set(flags) & {"U", "f"} or "--sort=none" in command.words):
        yield "the order of a folder", "ls -U"
    if "ls" in names and set(flags) & {"t", "c", "u"}:
        yield "the clock", "ls -t"
    if command.piped_from == "find" and names & {"head", "tail"}:
        yield "the order of a folder", "find"


def _is_absolute_date(words: Sequence[str]) -> bool:
    return bool(_ABSOLUTE_DATE.search(" ".join(words[1:])))


def _names(words: Sequence[str]) -> set[str]:
    """The programs that a command starts, without their folders."""
    names = {words[0].rsplit("/", 1)[-1]} if words else set()
    if names & _WRAPPERS:
        rest = (word for word in words[1:] if not re.match(r"-|\d|[A-Za-z_]\w*=", word))
        started = (word for word in rest if word not in _WRAPPERS)
        names.add(next(started, "").rsplit("/", 1)[-1])
    return names | {word.rsplit("/", 1)[-1] for was, word in zip(words, words[1:], strict=False) if was in _EXECS}


def _programs_run(command: _Command, fixtures: Iterable[str]) -> Iterator[str]:
    """Fixtures that the command starts or reads as a program."""
    runs = [command.words[0]] if command.words else []
    if _names(command.words) & (_RUNS_FILE | _WRAPPERS):
        after = {"awk", "gawk", "mawk", "sed", "make"} & _names(command.words)
        runs += [word for was, word in zip(command.words, command.words[1:], strict=False) if not after or was == "-f"]
    runs += [word for was, word in zip(command.words, command.words[1:], strict=False) if was in _EXECS]
    for word in runs:
        name = re.sub(r"^(?:~|\$HOME|\$\{HOME\})(?=/)", HOME, word).removeprefix("./")
        for path in fixtures:
            relative = "/" in word and not word.startswith("/") or (command.words[0] in {".", "source"} | _SHELLS)
            if name == path or (relative and path.endswith(f"/{name}") and not name.startswith("/")):
                yield path


def _search_paths(script: str) -> Iterator[tuple[int, str]]:
    """Assignments of PATH with a folder that the agent may write."""
    before = ""
    for token in tokens(script):
        is_first = before in {"", "export", "env", *_LEADS} or _ASSIGNMENT.match(before)
        if token.kind == "word" and is_first and _OWN_PROGRAMS.match(script[token.start : token.end].replace('"', "")):
            yield token.start, token.text
        before = token.text if token.kind == "word" else ""


def _background(reference: str) -> Iterator[tuple[int, str]]:
    """The commands that the reference starts in the background and does not wait for."""
    waits = [command.at for command in _commands(reference) if command.words[:1] == ("wait",)]
    for token in tokens(reference):
        if token.kind == "operator" and token.text == "&" and not any(at > token.start for at in waits):
            yield token.start, "&"
    for command in _commands(reference):
        for name in _names(command.words) & {"nohup", "setsid", "at", "batch", "crontab", "disown"}:
            yield command.at, name


def _commands(script: str, at: int = 0, depth: int = 0) -> Iterator[_Command]:
    """Every simple command, those in `$( )`, in quotes of `sh -c` and in here documents too."""
    words: list[ShellToken] = []
    piped = ""
    parentheses = 0
    for token in tokens(script):
        if token.kind == "word":
            words.append(token)
            if depth < 5:
                for start, inner in _substitutions(script[token.start : token.end]):
                    yield from _commands(inner, at + token.start + start, depth + 1)
        elif token.kind == "body":
            for start, inner in _substitutions(token.text) if depth < 5 else ():
                yield from _commands(inner, at + token.start + start, depth + 1)
        elif token.text == ")" and not parentheses:
            words = []  # the pattern of a `case`
        else:
            parentheses += (token.text == "(") - (token.text == ")")
            command = _simple(words, script, at, piped)
            if command is not None:
                yield command
                yield from _inner_scripts(command, depth)
            piped = (
                command.words[0]
                if command is not None and token.text == "|"
                else piped
                if token.text == "\n" and not words
                else ""
            )
            words = []
    command = _simple(words, script, at, piped)
    if command is not None:
        yield command
        yield from _inner_scripts(command, depth)


def _simple(words: list[ShellToken], script: str, at: int, piped: str) -> _Command | None:
    while words and not words[0].quoted and (words[0].text in _LEADS or _ASSIGNMENT.match(words[0].text)):
        words = words[1:]
    if not words:
        return None
    raw = " ".join(_expanded(script[token.start : token.end]) for token in words)
    return _Command(at + words[0].start, tuple(token.text for token in words), raw, piped)


def _inner_scripts(command: _Command, depth: int) -> Iterator[_Command]:
    """Scripts in the words of `sh -c`, `eval` and `trap`, and the commands that an awk program starts."""
    if depth >= 5:
        return
    names = _names(command.words)
    texts: list[str] = []
    if names & {"eval", "trap"}:
        texts = list(command.words[1:])
    elif names & _SHELLS and "-c" in command.words[:-1]:
        texts = [command.words[command.words.index("-c") + 1]]
    elif names & {"awk", "gawk", "mawk", "perl"}:
        texts = [part for word in command.words[1:] for match in _IN_PROGRAM.findall(word) for part in match if part]
    for text in texts:
        for inner in _commands(text, 0, depth + 1):
            yield _Command(command.at, inner.words, inner.raw, inner.piped_from)


def _expanded(raw: str) -> str:
    """A word as written, where `$NAME` in single quotes means nothing to the shell."""
    return re.sub(r"\$(?=\w)", "", raw) if raw.startswith("'") and raw.endswith("'") else raw


def _substitutions(raw: str) -> Iterator[tuple[int, str]]:
    """The scripts of `$( )` and back-ticks in a word as written, with where they begin. Single quotes hide them."""
    position, quoted = 0, False
    while position < len(raw):
        char = raw[position]
        if char == "\\":
            position += 1
        elif char == '"':
            quoted = not quoted
        elif char == "'" and not quoted:
            position = raw.find("'", position + 1)
            if position < 0:
                return
        elif char == "`":
            end = raw.find("`", position + 1)
            if end < 0:
                return
            yield position + 1, raw[position + 1 : end]
            position = end
        elif raw.startswith("$(", position) and not raw.startswith("$((", position):
            end = _closing(raw, position + 2)
            yield position + 2, raw[position + 2 : end]
            position = end
        position += 1


def _closing(raw: str, position: int) -> int:
    depth = 1
    while position < len(raw):
        char = raw[position]
        if char == "\\":
            position += 1
        elif char == "'":
            position = max(raw.find("'", position + 1), position)
        elif char in "()":
            depth += 1 if char == "(" else -1
            if not depth:
                return position
        position += 1
    return len(raw)
