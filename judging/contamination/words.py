"""The words of a text, and the readings of it in which they stand side by side."""

import re

# In scripts without blanks between words each sign is a word.
_SIGNS = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_SIGN = re.compile(f"[{_SIGNS}]")
# In those of Thai, Lao, Burmese and Khmer it is a letter with the marks around it.
_LETTERS = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_MARKS = r"\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u17b4-\u17d3"
WORD = re.compile(rf"[{_SIGNS}]|[^\W{_SIGNS}{_LETTERS}]+|[{_LETTERS}][{_MARKS}]*")
_ASCII_WORD = re.compile(r"\w+")
# Lines that many programs begin with, and the numbers that listings put before their lines.
_HEADER = re.compile(
    r"^[ \t]*(?:#!.*|# -\*-.*|(?:from [\w.]+ )?import [\w.*]+(?: as \w+)?(?:, [\w.]+(?: as \w+)?)*;?|#include [<\"].*"
    r"|using [\w.]+;|package [\w.]+;?)[ \t]*$",
    re.MULTILINE,
)
_NUMBERED = re.compile(r"^[ \t]*\d{1,6}(?:[:|)\t→]|[ ]{2,})", re.MULTILINE)
# What stands between words where a text is a string of JSON or part of a page.
_MARK = re.compile(
    r"\\+(?:[nrt\"/]|u(?P<code>[0-9a-fA-F]{4}))|</?[A-Za-z][A-Za-z0-9]{0,9}\s?/?>|&(?:nbsp|quot|lt|gt|amp|#\d{1,5});"
)


def words_of(text: str) -> list[str]:
    return (_ASCII_WORD if text.isascii() else WORD).findall(text.casefold())


def with_blanks(text: str) -> str:
    """Return the text with a blank around each sign that is a word."""
    return text if text.isascii() else _SIGN.sub(r" \g<0> ", text)


def without_headers(text: str) -> str:
    return _HEADER.sub("", text)


def readings(text: str) -> list[str]:
    """Return the text without headers: as it is, without escapes and tags, and without the numbers of its lines."""
    text = without_headers(text)
    return list(dict.fromkeys([text, _MARK.sub(_between, text), _NUMBERED.sub("", text)]))


def _between(mark: re.Match[str]) -> str:
    """Return a letter for its code, and a blank for any other mark, also for half of a pair of codes."""
    number = int(mark["code"] or "0", 16)
    return chr(number) if number > 0x20 and not 0xD800 <= number < 0xE000 else " "
