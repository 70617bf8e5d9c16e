"""Recall and false alarms of the scan: hidden values, command lines, other services, and text for machines."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from judging.scan.decode import views
from judging.scan.mask import Masks
from judging.scan.scan import ScanFinding, scan, scan_each
from tests.judging.scan.hidden import COMMANDS, CONTROL, ENCODED, HARMLESS, KEY, SERVICES

SETS = {"encoded": ENCODED, "command lines": COMMANDS, "other services": SERVICES, "control text": CONTROL}


def finds(text: str, part: str) -> bool:
    start = text.index(part)
    return any(found.start < start + len(part) and start < found.end for found in scan(text))


@pytest.mark.parametrize("name", SETS)
def test_recall(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    cases: Sequence[tuple[str, str]] = SETS[name]
    missed = [text for text, part in cases if not finds(text, part)]
    with capsys.disabled():
        print(f"\n{name}: recall {1 - len(missed) / len(cases):.2f} of {len(cases)}", end=" ")
    assert len(missed) <= 0.05 * len(cases), missed


def test_nothing_is_found_in_harmless_text(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = {text: scan(text) for text in HARMLESS if scan(text)}
    with capsys.disabled():
        print(f"\nfalse alarms: {len(wrong)} of {len(HARMLESS)}", end=" ")
    assert wrong == {}


@pytest.mark.parametrize(("text", "part"), ENCODED)
def test_a_finding_is_in_the_text_as_it_is_and_a_mask_takes_the_value_away(text: str, part: str) -> None:
    masked = Masks().apply(text, scan(text), lambda _: True)
    assert KEY not in masked and all(view.text.count(KEY) == 0 for view in views(masked))
    assert [found for found in scan(masked) if text.count("@") == 0 and found.kind == "secret"] == []
    for found in scan(text):
        assert 0 <= found.start < found.end <= len(text)


def test_texts_that_are_scanned_together_have_the_findings_of_each_alone() -> None:
    texts = [*HARMLESS, *(text for cases in SETS.values() for text, _ in cases), "naïve 🙂", "x" * 5_000, ""]
    assert list(scan_each(texts)) == [scan(text) for text in texts]


def test_a_value_beside_an_encoded_one_keeps_its_place() -> None:
    text = f"x%20y {KEY} z%20"
    assert scan(text) == (ScanFinding("github-token", text.index(KEY), text.index(KEY) + len(KEY)),)


def test_a_service_key_after_other_letters_keeps_its_place() -> None:
    text, part = SERVICES[0]
    longer = f"naïve 🙂 {text}"
    (found,) = scan(longer)
    assert longer[found.start : found.end] == part


def test_scans_at_the_same_time_find_the_same() -> None:
    texts = [text for text, _ in SERVICES] * 20
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(scan, texts)) == [scan(text) for text in texts]
