"""Texts that a checker takes for the right one because it reads them as code, or tolerates too much."""

import re
from collections.abc import Iterator
from itertools import islice

from sandbox.gate.foreign import is_rounded

_NUMBER = re.compile(r"[1-9]\d{0,14}\Z")
_BETWEEN_WORDS = re.compile(r"(?<=\w)[ \t]+(?=\w)")
_SIGN = re.compile(r"(?<=\w)[^\w\s](?=\w)")
_DOT = re.compile(r"(?<=\w)\.(?=\w)")
_LONG_WORD = re.compile(r"(?<!\w)(\w)(\w+)")
# How a text of these begins.
_MARKUP = "{[<"


# A reason without a word of any task, and reasons that a checker takes for the right one because it executes them: in a
# test without quotes, as a pattern, or by `eval`.
ANY_REASON = "zq qz zq qz zq qz"
REASONS_AS_CODE = (
    *("zq = zq -o zq", "-n 1 -o 2", "*", ".*", "exit 0", "; exit 0 ;", "$(exit 0)"),
    *('zq" = "zq" ] || [ "zq', "zq' = 'zq' ] || [ 'zq", '"; exit 0; "', "'; exit 0; '"),
)


# Behind the name of a program, something of the shell in a text between quotes or in a here document.
_SUBSTITUTED = re.compile(r"\b[^\n]*?(?:\"(?:[^\"\\]|\\.)*?|<<-? ?\w+\n(?:[^\\]|\\.)*?)\$[({A-Za-z_]", re.DOTALL)
# So far and so often it is looked for: the time is bounded.
_FAR, _OFTEN = 400, 20
# Texts that end the quotes and make a condition true or false there; `@` is the quote.
_QUOTING = {
    re.compile(r"\b(?:python[\d.]*|perl|ruby|sqlite3)"): ("zq@ and 0 and @", "zq@ or 1 or @"),
    re.compile(r"\b(?:[gm]?awk|node|php)"): ("zq@ && 0 && @", "zq@ || 1 || @"),
    re.compile(r"\b(?:eval|(?:ba|da)?sh)"): ("zq@ = @zq@ ] || [ @zq",),
}


def quoted_code(checker: str) -> Iterator[tuple[str, str]]:
    """Return what to call it, and texts that a checker executes that puts them between quotes of a program."""
    for program, texts in _QUOTING.items():
        ends = (match.end() for match in islice(program.finditer(checker), _OFTEN))
        if any(_SUBSTITUTED.match(checker, end, end + _FAR) for end in ends):
            for text in texts:
                yield from (("a text that ends the quotes of a program", text.replace("@", q) + "\n") for q in "'\"")


def texts_as_code(text: str) -> Iterator[tuple[str, str]]:
    """Return what to call it, and a wrong text that makes a checker pass that executes it: in a test without quotes, in
    arithmetic, as a format, a pattern, a path, an address or commands."""
    value = text.strip()
    if "\n" not in value and value:
        yield "a text that is true in a test without quotes", f"{value} = {value} -o x\n"
        yield "a text that is true in a test without quotes, by its beginning", f"{value} -o x\n"
    if "\n" not in value and len(value) > 1:
        if not is_rounded(value, f"{value[:-1]}0"):
            yield "a part of its text", f"{value[:-1]}\n"
        yield "a pattern of the shell that fits it", f"{value[:-1]}?\n"
        yield "a pattern that fits it", f"{value[:-1]}.\n"
    if "\n" not in value and value:
        yield "a format of printf that prints the same", f"{value}%s\n"
        yield "a text that echo cuts to the same", f"{value}\\c zq\n"
    if value.startswith("/") and "\n" not in value:
        yield "the path of another file", "/etc/passwd\n"
    if _NUMBER.match(value):
        yield "a sum of the same value", f"{int(value) - 1} + 1\n"
        yield "a sum that is true in any arithmetic", "1 || 0\n"
        yield "a range of lines that ends at its number", f"1,{value}\n"
        yield "the number with letters behind it", f"{value}zq\n"
    yield "an empty line", "\n"
    yield "a text that is true in any test without quotes", "-n 1 -o 2\n"
    yield "a pattern that fits everything", ".*\n"
    yield "a pattern of the shell that fits everything", "*\n"
    yield "a command that ends the checker", "exit 0\n"


def tolerated(text: str) -> Iterator[tuple[str, str, bool]]:
    """Return what to call it, a text that only a tolerant comparison takes for `text`, and whether it is only doubtful:
    how lines are broken, and blanks in a markup, may be free."""
    is_markup = text.lstrip()[:1] in _MARKUP
    lines = text.strip().splitlines()
    found = [
        ("letters of the other case", text.swapcase(), False),
        ("a blank inside of each word", _LONG_WORD.sub(r"\1 \2", text), is_markup),
        ("no blank between words", _BETWEEN_WORDS.sub("", text), is_markup),
        ("a letter in place of each dot", _DOT.sub("x", text), False),
        ("no signs between its words", _SIGN.sub("", text), is_markup),
        ("a mark inside of each word", _LONG_WORD.sub(r"\1-\2", text), False),
        ("more words behind each line", "".join(f"{line} zq\n" for line in lines), False),
        ("more words before each line", "".join(f"zq {line}\n" for line in lines), False),
        ("each line twice", "".join(f"{line}\n{line}\n" for line in lines) if len(lines) > 1 else text, False),
        ("all lines in one", f"{' '.join(lines)}\n" if len(lines) > 1 else text, True),
    ]
    return (entry for entry in found if entry[1] != text)
