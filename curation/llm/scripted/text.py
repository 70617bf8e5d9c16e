"""Find blocks, commands, paths and identifiers in an answer or a history."""

import re
from collections.abc import Iterator

THOUGHT = re.compile(r"^\W*THOUGHT\b", re.MULTILINE)
BLOCK = re.compile(r"```(?:bash|sh|shell)[ \t]*\n(.*?)```", re.DOTALL)
ANY_BLOCK = re.compile(r"```\w*[ \t]*\n(.*?)```", re.DOTALL)
PATH = re.compile(
    r"(?<![\w/.:-])(?:(?:\.{0,2}/)?(?:[\w.@-]+/)+[\w.@-]*\w"
    r"|[\w-]+\.(?:py|js|mjs|ts|tsx|go|sh|md|json|toml|cfg|ini|html|css|csv|yml|yaml|txt|rs|java|rb|c|h|cpp))\b"
)
IDENTIFIER = re.compile(r"(?<![\w/.-])(?:[A-Za-z]\w*_\w*[A-Za-z0-9]|[a-z]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*)(?![\w/])")
WORD = re.compile(r"[A-Za-z]{4,}")
HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?[^\n]*\n.*?^\s*\1\s*$", re.DOTALL | re.MULTILINE)
QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"", re.DOTALL)
LOOP = re.compile(r"\b(?:for|while|until)\b.*?;\s*done\b", re.DOTALL)
OPENED = re.compile(r"\b(?:Path|open)\(\s*[\"']([^\"']+)[\"']")
LEAD_IN = re.compile(
    r"^(?:(?:cd|mkdir)\s[^&\n]*&&\s*|for\s[^;\n]*;\s*do\s+|gofmt\s[^;\n]*;\s*|\w+=(?:\"[^\"]*\"|\S+)\s+)+"
)

STYLES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("submit", re.compile(r"COMPLETE_TASK|^submit\b|SUBMIT_FINAL")),
    (
        "edit",
        re.compile(r"^(?:sed\s+(?:-\w+\s+)*-i|perl\s+-\w*i|cat\s+(?:>|<<)|tee\b|patch\b|git\s+apply|printf\b.*>)"),
    ),
    ("edit", re.compile(r"^(?:python3?|node)\s+-\s*<<.*(?:write|replace)", re.DOTALL)),
    (
        "test",
        re.compile(r"^(?:\w+=\S+\s+)*(?:python3?|pytest|npm|npx|node|go\s+(?:test|run|vet)|make|bats|tox|bash|sh|\./)"),
    ),
    ("search", re.compile(r"^(?:grep|rg|ag|ack|git\s+grep)\b|^find\s(?!/\s)(?!.*-name\s+\S?\*\.).*-name")),
    ("read", re.compile(r"^(?:cat|sed\s+-n|head|tail|nl|less|awk|git\s+(?:show|diff|blame))\b")),
    ("explore", re.compile(r"^(?:ls|find|tree|pwd|wc|git\s+(?:log|status)|du|file)\b")),
)


def commands_of(text: str, fence: re.Pattern[str] = BLOCK) -> Iterator[str]:
    """The bodies of the fenced blocks, with runs of blanks collapsed so that equal commands compare equal."""
    for match in fence.finditer(text):
        yield re.sub(r"[ \t]+", " ", match.group(1)).strip()


def command_count(block: str) -> int:
    """How many separate commands a block has. Pipes, ``&&`` chains and loops are one, here-documents none."""
    bare = LOOP.sub("loop", QUOTED.sub("''", HEREDOC.sub("<<EOF", block)).replace("\\\n", " "))
    lines = (line.strip() for line in re.split(r"[\n;]", bare))
    return sum(1 for line in lines if line and not line.startswith("#"))


def style_of(command: str) -> str:
    """The action style by the first command, after lead-ins such as ``cd … &&``, ``for … do`` and ``X=1``."""
    first = LEAD_IN.sub("", command)
    return next((style for style, pattern in STYLES if pattern.search(first)), "other")


def targets_of(command: str) -> list[str]:
    """Paths a command acts on: its unquoted arguments, and files that a script in it opens by name."""
    return paths_in(QUOTED.sub("''", HEREDOC.sub("", command)) + "\n" + "\n".join(OPENED.findall(command)))


def paths_in(text: str) -> list[str]:
    """Paths in order of appearance, without a leading ``./`` and without repeats."""
    return list(dict.fromkeys(path.removeprefix("./") for path in PATH.findall(text)))


def identifiers_in(text: str) -> list[str]:
    """snake_case and camelCase names in order of appearance, without repeats."""
    return list(dict.fromkeys(IDENTIFIER.findall(text)))


def words_in(text: str) -> frozenset[str]:
    """Lower-case words of four letters and more."""
    return frozenset(word.lower() for word in WORD.findall(text))
