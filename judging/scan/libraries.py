"""Values that libraries know: phones, cards, IBANs, and secrets of known services, by the rules that Kingfisher and
Betterleaks keep, some 490. Nothing is sent to a service: the rules' checks with the network are not used."""

import re
from collections.abc import Iterator
from functools import cache

import phonenumbers
from kingfisher_sdk import Rules, Scanner
from stdnum import iban, luhn

from judging.scan.likely import WORD, run_of
from judging.scan.placeholders import is_trivial_password
from judging.shell.words import word_set

Span = tuple[int, int]

# The patterns begin with a digit or letter and then look back, so that the search skips to the next one.
_CARD = re.compile(
    r"\d(?<![\w.\-+/]\d)(?:\d{12,18}|\d{3}([ -])\d{4}\1\d{4}\1\d{4}(?:\1\d{3})?|\d{3}([ -])\d{6}\2\d{4,5})"
    r"(?![\w\-/=]|[. ]\d)"
)
_ISSUERS = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})"  # Visa
    r"|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}"  # Mastercard
    r"|3[47]\d{13}"  # American Express
    r"|(?:6011|64[4-9]\d|65\d\d)\d{12}"  # Discover
    r"|35(?:2[89]|[3-8]\d)\d{12}"  # JCB
    r"|3(?:0[0-5]|[68]\d)\d{11}"  # Diners Club
    r"|62\d{14,17}"  # UnionPay
)
# Numbers that processors publish for tests.
_TEST_CARDS = word_set(
    """
    4111111111111111 4242424242424242 4012888888881881 4222222222222 5555555555554444 5105105105105100
    5200828282828210 2223003122003222 2223000048400011 378282246310005 371449635398431 378734493671000
    6011111111111117 6011000990139424 6011981111111113 30569309025904 38520000023237 36227206271667 3056930009020004
    3530111333300000 3566002020360505 6200000000000005 4917610000000000 4000000000000002
    """
)
_IBAN = re.compile(r"[A-Z](?<![\w\-/+][A-Z])[A-Z]\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![A-Za-z0-9/=+])")
_INTERNATIONAL = re.compile(r"[+0](?<![\w.+\-/][+0])(?:(?<=\+)|0(?=[1-9]))[1-9](?:[ .()/-]{0,2}\d){6,14}(?![\w-]|\.\d)")
# Three, three and four digits, as in North America; the groups are set apart.
_GROUPED = re.compile(r"[(\d](?<![\w.+\-/][(\d])(?:(?<=\()\d{3}\) ?|\d{2}[ .-])\d{3}[ .-]\d{4}(?![\w-]|\.\d)")
_NAMED = re.compile(
    r"(?:tel|phone|telephone|mobile|cell|fax|whatsapp|telefon|handy)\.?[^\S\n]{0,2}(?:no|number|nr)?\.?"
    r"[^\S\n]{0,2}[:=]?[^\S\n]{0,2}[\"']?(?P<number>\(?0\d(?:[ .()/-]{0,2}\d){6,12})(?![\w-]|\.\d)"
)
_NAMED_ANCHORS = ("tel", "phone", "mobile", "cell", "fax", "whatsapp", "handy")
_REGIONS = ("GB", "DE", "FR", "IT", "ES", "AT", "CH", "NL", "AU", "IN", "JP", "BR")
# Numbers set aside for fiction, of the national number: 555 in North America, Ofcom's in the United Kingdom.
_FICTION = re.compile(r"1:(?:\d{3}555\d{4}|555\d{7})|44:(?:7700900\d{3}|2079460\d{3}|1\d{2}4960\d{3}|1632960\d{3})")


def find_cards(text: str) -> Iterator[Span]:
    """Yield card numbers: an issuer's prefix and length, Luhn's checksum, and no published test number."""
    for match in _CARD.finditer(text):
        digits = re.sub(r"\D", "", match.group())
        if digits in _TEST_CARDS or digits.startswith("400000") or len(set(digits)) < 4:
            continue
        if _ISSUERS.fullmatch(digits) and luhn.is_valid(digits):
            yield match.span()


def find_ibans(text: str) -> Iterator[Span]:
    """Yield IBANs with a valid checksum and the length of their country. A word in capitals may follow."""
    for match in _IBAN.finditer(text):
        start, end = match.span()
        while end - start >= 15:
            if iban.is_valid(text[start:end], check_country=False):
                yield start, end
                break
            end = max(text.rfind(" ", start, end), start)


def find_phones(text: str) -> Iterator[Span]:
    """Yield phone numbers that the numbering plans know: international, North American, or national after a word
    such as *Tel*. Numbers set aside for fiction do not count."""
    for match in _INTERNATIONAL.finditer(text):
        written = match.group()
        if _is_phone("+" + written[2:] if written.startswith("00") else written, None):
            yield match.span()
    for match in _GROUPED.finditer(text):
        if _is_phone(match.group(), "US"):
            yield match.span()
    lower = text.lower()
    if len(lower) != len(text) or not any(anchor in lower for anchor in _NAMED_ANCHORS):
        return
    for match in _NAMED.finditer(lower):
        if any(_is_phone(match["number"], region) for region in _REGIONS):
            yield match.span("number")


def _is_phone(written: str, region: str | None) -> bool:
    try:
        number = phonenumbers.parse(written, region)
    except phonenumbers.NumberParseException:
        return False
    if _FICTION.fullmatch(f"{number.country_code}:{number.national_number}"):
        return False
    return phonenumbers.is_valid_number(number)


# None of the rules matches a text without such a run, but for that of 1Password (`A3-`), and most short texts have
# none.
LONG_RUN = run_of(WORD, 12)
# A password in a URL has a rule of ours, with a list of those that every documentation uses.
_OTHER_RULES = frozenset({"betterleaks.generic-credential-uri"})


@cache
def _scanner() -> Scanner:
    """The rules are compiled once on a machine, which takes seconds, and read from the user's cache afterwards."""
    return Scanner(Rules(confidence="medium"), base64=False)


def find_known_secrets(text: str) -> Iterator[tuple[int, int]]:
    data = text.encode("utf-8", "surrogatepass")
    for finding in _scanner().scan(data):
        if finding.visible and finding.rule_id not in _OTHER_RULES and not is_trivial_password(finding.secret):
            start, end = (finding.location[edge] for edge in ("start_offset", "end_offset"))
            yield _characters(data[:start]), _characters(data[:end])


def _characters(data: bytes) -> int:
    return len(data) if data.isascii() else len(data.decode("utf-8", "surrogatepass"))
