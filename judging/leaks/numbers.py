"""Numbers in every spelling: `2_311`, `0x907`, `2311L`, `2.311e3`, `2**13-1`, "two thousand three hundred"."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from judging.shell.words import word_set

# A unit may follow: `5417L`, `137ms`.
_DIGITS = re.compile(
    r"(?<![\w.#/-])(?:0[xob][0-9a-fA-F_]{2,18}|\d[\d_]{0,24}(?:,\d{3}){0,6}(?:\.\d{1,18})?(?:e\d{1,2})?)"
    r"(?=(?:[uUlLnfdF]{1,3}|m?s|px|[kKMG]i?[bB]?)?(?![\w-]|\.\w|/\w))"
)
_SUM = re.compile(r"(?<![\w.#/-])\d{1,6}(?:[ \t]?(?:\*\*|<<|[-+*^])[ \t]?\d{1,6}){1,4}(?![\w.])")
_SMALL = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_TEENS = ["thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_ORDINALS = {
    "first": "one", "second": "two", "third": "three", "fifth": "five", "eighth": "eight", "ninth": "nine",
    "twelfth": "twelve",
}  # fmt: skip
_VALUES = {word: n for n, word in enumerate((*_SMALL, *_TEENS))} | {word: 20 + 10 * n for n, word in enumerate(_TENS)}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 1_000_000}
# `twentieth` is `twentie` and `th`.
_STEMS = [f"{word[:-1]}ie" for word in _TENS]
_SAID = "|".join(sorted((*_VALUES, *_SCALES, *_ORDINALS, *_STEMS), key=len, reverse=True))
_WORDS = re.compile(
    rf"\b(?:{_SAID})(?:i?e?th)?(?:[\s-]{{1,2}}(?:and[\s-])?(?:{_SAID})(?:i?e?th)?){{0,9}}\b", re.IGNORECASE
)
_QUANTITY = re.compile(
    r"(?<![\w.])(\d{1,6}(?:\.\d{1,3})?)[ -]?"
    r"(?:(ms|milliseconds?|s|seconds?|min|minutes?|h|hours?|days?|weeks?)|([kmg])i?b?)\b",
    re.IGNORECASE,
)
# By the first letters of a unit.
_MILLISECONDS = {"ms": 1, "mil": 1, "s": 1000, "sec": 1000, "min": 60_000, "h": 3_600_000, "hou": 3_600_000,
                 "day": 86_400_000, "wee": 604_800_000}  # fmt: skip
_LARGEST_POWER = 64
# Numbers that need no record: sizes, ports, statuses, times.
_COMMON = frozenset(
    int(number)
    for number in word_set(
        "36 42 48 72 99 120 123 127 150 180 192 240 250 255 300 360 365 366 401 403 404 405 409 410 418 422 429 443 "
        "500 998 1460 2379 5353 5672 6443 9092 9418 11211 "
        "501 502 503 504 600 640 644 720 750 755 768 777 900 999 1023 1080 1234 1280 1440 1920 3306 3600 5432 6379 "
        "8000 8080 8443 8888 9999 12345 27017 32767 65535 86400 123456 604800"
    )
)
_COMMON_FLOATS = frozenset({"0.25", "0.75", "1.25", "0.05", "0.15", "0.95", "0.99", "3.14", "2.71"})


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a text: where it is, and its value in decimal digits. `said` is whether it is in words."""

    span: tuple[int, int]
    value: str
    said: bool = False


def digits(text: str, start: int = 0) -> Iterator[Number]:
    """Yield the numbers that are written in digits, from `start` on."""
    for match in _DIGITS.finditer(text, start):
        yield Number(match.span(), _decimal(match[0]))


def numbers(text: str) -> Iterator[Number]:
    """Yield the numbers of a text: in digits, as sums and powers of them, and in English words."""
    yield from digits(text)
    for match in _SUM.finditer(text):
        value = _calculated(match[0])
        if value is not None:
            yield Number(match.span(), str(value))
    for match in _WORDS.finditer(text):
        value = _counted(match[0])
        if value is not None:
            yield Number(match.span(), str(value), said=True)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with a unit of time or size: its values in milliseconds and seconds, or in bytes of either kilo, and
    whether people pick it, such as 24 hours."""

    span: tuple[int, int]
    values: frozenset[str]
    is_round: bool


def quantities(text: str) -> Iterator[Quantity]:
    """Yield the quantities of a text: `180 ms`, `30 seconds`, `10 MB`."""
    for match in _QUANTITY.finditer(text):
        amount, time, size = Decimal(match[1]), match[2], match[3]
        if time:
            factors = [Decimal(_MILLISECONDS[time.lower()[:3]]), Decimal(_MILLISECONDS[time.lower()[:3]]) / 1000]
        else:
            factors = [Decimal(base ** ("kmg".index(size.lower()) + 1)) for base in (1000, 1024)]
        values = frozenset(_decimal(f"{amount * factor:f}") for factor in factors)
        is_round = bool(time) and amount * factors[0] % 60_000 == 0
        yield Quantity(match.span(), values, is_round or _is_round(int(match[1].replace(".", "").strip("0") or 0)))


def significant(value: str) -> str:
    """Return the digits that a change of the unit keeps: 2.749 seconds are 2749 milliseconds. Short ones stay."""
    kept = value.replace(".", "").strip("0")
    return kept if len(kept) >= 4 else value


def is_telling(value: str) -> bool:
    """Whether a value is unlikely to be picked by chance."""
    if "." in value:
        kept = value.replace(".", "").lstrip("0")
        return len(kept) >= 2 and value not in _COMMON_FLOATS and not re.fullmatch(r"\d\.\d?5", value)
    number = int(value)
    return number not in _COMMON and not 1900 <= number <= 2100 and not _is_round(number)


def _is_round(number: int) -> bool:
    """Whether people pick a number as a limit or a size, such as 12, 45, 512 or 1500."""
    if number < 13 or number & (number - 1) == 0:
        return True
    if number < 100:
        return number % 5 == 0
    return len(str(number).rstrip("0")) < 3 and not (number < 1000 and number % 50 != 0)


def _decimal(text: str) -> str:
    plain = text.replace("_", "").replace(",", "").lower()
    if plain[:2] in ("0x", "0o", "0b"):
        try:
            return str(int(plain, 0))
        except ValueError:  # digits of another base
            return "0"
    if "e" in plain:
        try:
            plain = f"{Decimal(plain):f}"
        except InvalidOperation:
            return "0"
    plain = plain.lstrip("0") or "0"
    plain = f"0{plain}" if plain.startswith(".") else plain
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def _calculated(text: str) -> int | None:
    """Return the value of `2**13 - 1` or `1 << 13`; None if the text is no sum, or its value negative or too large."""
    try:
        tree = ast.parse(text.replace("^", "**"), mode="eval")
    except SyntaxError:  # `08 - 1`
        return None
    value = _value(tree.body)
    return value if value is not None and 0 <= value < 10**20 else None


def _value(node: ast.expr) -> int | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, int) else None
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _value(node.left), _value(node.right)
    if left is None or right is None or abs(left) > 10**20:
        return None
    if isinstance(node.op, ast.Pow | ast.LShift):
        if not 0 <= right <= _LARGEST_POWER or abs(left) > 1024:
            return None
        return int(left**right) if isinstance(node.op, ast.Pow) else left << right
    if isinstance(node.op, ast.Mult):
        return left * right
    return left + right if isinstance(node.op, ast.Add) else left - right


def _counted(text: str) -> int | None:
    """Return what number words say: "eighteen hundred and seventy-nine", "thirty-seventh", "two seven one"."""
    words = [_cardinal(word) for word in re.findall(r"[a-z]+", text.lower()) if word != "and"]
    if len(words) >= 3 and all(word in _SMALL[:10] for word in words):
        return int("".join(str(_VALUES[word]) for word in words))
    total = part = 0
    for word in words:
        if word in _VALUES:
            part += _VALUES[word]
        elif word == "hundred":
            part = 100 * (part or 1)
        else:
            total, part = total + _SCALES[word] * (part or 1), 0
    return total + part


def _cardinal(word: str) -> str:
    if word in _VALUES or word in _SCALES:
        return word
    bare = word.removesuffix("th")
    bare = f"{bare[:-2]}y" if bare.endswith("ie") else bare
    return _ORDINALS.get(word, bare)
