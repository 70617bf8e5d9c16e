"""A reference solution as an agent types it: one complete command after the other, each in a shell of its own."""

import re
from collections.abc import Iterator

from judging.shell.words import tokens

_OPENS = frozenset({"if", "case", "while", "until", "for", "{"})
_CLOSES = frozenset({"fi", "esac", "done", "}"})
_JOINS = frozenset({"&&", "||", "|"})
# After these the next word is a command again.
_LEADS = frozenset({"then", "do", "else", "elif", "!", "if", "while", "until", "{", "time"})
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)=")
_READS = re.compile(r"(?:\bfor[ \t]|\b(?:read|getopts)\b|\$\{(?=\w+:?=))((?:[ \t]*[\w:-]+)+)")
_FUNCTION = re.compile(r"(?m)(?:^|[;&|{]|\b(?:then|do|else))\s*([A-Za-z_]\w*)\s*\(\)")
_EXPORTS = frozenset({"export", "readonly"})
# What these set is their own shell's.
_SETTINGS = frozenset({"umask", "set", "trap", "ulimit", "shopt"})


def commands_of(script: str) -> tuple[str, ...]:
    """Cut a script at the ends of lines where a command is complete; comments alone are no command."""
    commands: list[str] = []
    start = 0
    for end in [*_ends(script), len(script)]:
        command = script[start:end].strip("\n")
        if any(token.kind == "word" for token in tokens(command)):
            commands.append(command)
        start = end
    return tuple(commands)


def lost_between(commands: tuple[str, ...]) -> str:
    """A sentence on the names that one command sets for itself alone and a later one uses; empty if there are none."""
    lost = [text for number, command in enumerate(commands) for text in _lost(command, commands[number + 1 :])]
    if not lost:
        return ""
    return f"Each command has a shell of its own, as an agent's has: {'; '.join(dict.fromkeys(lost))}."


def _ends(script: str) -> Iterator[int]:
    """Where the next command begins after each line that ends one. A here document belongs to its command."""
    depth = parentheses = 0
    is_command, is_over = True, False
    before = ""
    for token in tokens(script):
        if token.kind == "body":
            continue
        if is_over:
            yield token.start
        is_over = token.text == "\n" and before not in _JOINS and depth <= 0 and parentheses <= 0
        if token.kind == "word":
            depth += (token.text in _OPENS) - (token.text in _CLOSES) if is_command and not token.quoted else 0
            is_command = is_command and (token.text in _LEADS or bool(_ASSIGNED.match(token.text)))
        else:
            parentheses += (token.text == "(") - (token.text == ")" and parentheses > 0)
            is_command = True
        before = before if token.text == "\n" else token.text


def _lost(command: str, later: tuple[str, ...]) -> Iterator[str]:
    words = [token for token in tokens(command) if token.kind == "word"]
    exported = {word.text.split("=")[0] for word in words} if words and words[0].text == "export" else set()
    for name in sorted(_assigned(command) - exported):
        used = re.compile(rf"\$\{{?#?{name}\b|\$\(\([^)]*\b{name}\b")
        if any(used.search(text) for text in later if name not in _assigned(text)):
            yield f"`{name}` is set in `{_shown(command)}` and not exported"
    for name in _FUNCTION.findall(command):
        if any(word.text == name for text in later for word in tokens(text)):
            yield f"the function `{name}` is known in `{_shown(command)}` alone"
    if words and words[0].text in _SETTINGS and later:
        yield f"`{_shown(command)}` ends with its command"
    if words and words[0].text == "alias":
        for name in (word.text.split("=")[0] for word in words[1:]):
            if any(word.text == name for text in later for word in tokens(text)):
                yield f"the alias `{name}` is known in `{_shown(command)}` alone"


def _assigned(command: str) -> set[str]:
    """Variables that a command sets in its shell: by `NAME=value` alone, `${NAME:=value}`, `read`, `getopts`, `for`."""
    texts = _READS.findall(command)
    found = {name for text in texts for word in text.split() if (name := word.rstrip(":")).isidentifier()}
    words: list[str] = []
    for kind, text in [*((token.kind, token.text) for token in tokens(command)), ("operator", "\n")]:
        if kind == "word":
            words.append(text)
        elif kind == "operator":
            while words and words[0] in _LEADS | _EXPORTS:
                words = words[1:]
            names = [match[1] for word in words if (match := _ASSIGNED.match(word))]
            found.update(names if len(names) == len(words) else ())
            words = []
    return found


def _shown(command: str) -> str:
    line = command.strip().splitlines()[0]
    return line if len(line) <= 60 else f"{line[:59]}…"
