"""Secrets of known services, by the rules that Kingfisher and Betterleaks keep, some 490. Nothing is sent to a service:
the rules' checks with the network are not used."""

from collections.abc import Iterator
from functools import cache

from kingfisher_sdk import Rules, Scanner

from judging.scan.likely import WORD, run_of
from judging.scan.placeholders import is_trivial_password

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
