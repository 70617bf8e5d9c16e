"""Scan texts, and keep the findings by the text's hash and the version of the rules."""

import hashlib
from collections.abc import Iterable
from itertools import islice

from curation.samples.models import TextScan
from curation.web.ids import KeyList
from judging.scan.scan import ScanFinding, rule_set_version, scan_each

# A shorter text is scanned in less time than its result is read.
STORED_FROM = 200
# The rows of one query or insert.
_AT_ONCE = 5_000


def text_sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def scan_texts(texts: Iterable[str]) -> dict[str, tuple[ScanFinding, ...]]:
    """Return the findings of each text that has any. Texts that were never scanned under these rules are scanned, and
    their results are kept."""
    found: dict[str, tuple[ScanFinding, ...]] = {}
    kept: dict[str, str] = {}
    short: list[str] = []
    for text in dict.fromkeys(texts):
        if len(text) < STORED_FROM:
            short.append(text)
        else:
            kept[text_sha256(text)] = text
    for text, findings in zip(short, scan_each(short), strict=True):
        if findings:
            found[text] = findings
    rules = rule_set_version()
    missing = dict(kept)
    digests = iter(kept)
    while part := list(islice(digests, _AT_ONCE)):
        rows = TextScan.objects.filter(rules=rules, text_sha256__in=KeyList(part))
        for digest, findings in rows.values_list("text_sha256", "findings"):
            text = missing.pop(digest)
            if findings:
                found[text] = tuple(ScanFinding(*finding) for finding in findings)
    rows_to_add = []
    for (digest, text), findings in zip(missing.items(), scan_each(missing.values()), strict=True):
        if findings:
            found[text] = findings
        rows_to_add.append(TextScan(text_sha256=digest, rules=rules, findings=findings))
    TextScan.objects.bulk_create(rows_to_add, batch_size=_AT_ONCE, ignore_conflicts=True)
    return found
