"""Precision and recall of the scan on the labelled set, its speed on hostile text, and real text without findings."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from judging.scan.likely import Searches, likely
from judging.scan.rules import RULES
from judging.scan.scan import Masks, ScanFinding, kinds_of, rule_set_version, scan, texts_of
from tests.judging.scan.cases import FOUND, LOOK_ALIKES, RULES_OF
from tests.parts import shared_data
from tests.sampled import one_of

RECALL, PRECISION = 0.95, 0.95


def test_the_labelled_set_has_thirty_of_each_kind_and_as_many_look_alikes() -> None:
    others = {"command-password", "known-secret", "control-text"}  # in `test_hidden`
    assert {rule.name for rule in RULES} == others.union(*RULES_OF.values())
    assert [kind for kind in FOUND if len(FOUND[kind]) < 30 or len(LOOK_ALIKES[kind]) < 30] == []


@pytest.mark.parametrize("kind", FOUND)
def test_precision_and_recall(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    rules = RULES_OF[kind]
    missed = [text for text, value in FOUND[kind] if not _finds(text, value, rules)]
    # Of this kind's rules, every finding that is not the planted value of a text is wrong.
    texts = [text for others in LOOK_ALIKES.values() for text in others]
    wrong = [(text, text[f.start : f.end]) for text in texts for f in scan(text) if f.rule in rules]
    wrong += [
        (text, text[f.start : f.end])
        for other, cases in FOUND.items()
        for text, value in cases
        for f in scan(text)
        if f.rule in rules and (other != kind or not _overlaps(f, text, value))
    ]
    found = len(FOUND[kind]) - len(missed)
    recall, precision = found / len(FOUND[kind]), found / (found + len(wrong))
    with capsys.disabled():
        print(f"\n{kind}: recall {recall:.2f} of {len(FOUND[kind])}, precision {precision:.2f}", end=" ")
    assert recall >= RECALL, missed
    assert precision >= PRECISION, wrong


def _finds(text: str, value: str, rules: set[str]) -> bool:
    return any(f.rule in rules and _overlaps(f, text, value) for f in scan(text))


def _overlaps(finding: ScanFinding, text: str, value: str) -> bool:
    start = text.index(value)
    return finding.start < start + len(value) and start < finding.end


def test_nothing_is_found_in_look_alikes() -> None:
    found = {text: scan(text) for texts in LOOK_ALIKES.values() for text in texts}
    assert {text: found[text] for text in found if found[text]} == {}


def test_a_value_is_found_in_a_long_text_as_in_a_short_one() -> None:
    """Anchors are looked for in another way in long texts."""
    lines = "The total of café № 7 is rounded twice.\n" * 40
    searches = Searches(*RULES)
    texts = [text for cases in FOUND.values() for text, _ in cases]
    texts += [text for cases in LOOK_ALIKES.values() for text in cases]
    for beside in ("x" * 1_200, lines):
        likelies = [(text, searches.likely(beside + text), likely(RULES, beside + text)) for text in texts]
        assert [text for text, found, expected in likelies if found != expected] == []
    others = {text: scan(text) for text in texts}
    long = {text: scan(f"{lines}{text}") for text in others}
    moved = {
        text: tuple(f._replace(start=f.start + len(lines), end=f.end + len(lines)) for f in others[text])
        for text in texts
    }
    assert {text: long[text] for text in texts if long[text] != moved[text]} == {}


def test_real_trajectories_have_no_secret_and_no_person() -> None:
    texts = _real_texts()
    assert sum(map(len, texts)) > 50_000
    assert [(f.rule, text[f.start : f.end]) for text in texts for f in scan(text)] == []


@pytest.mark.parametrize("kind", FOUND)
def test_what_is_planted_in_a_real_turn_is_found_there(kind: str) -> None:
    texts = [text for text in _real_texts() if len(text) > 400]
    for number, (planted, value) in enumerate(FOUND[kind]):
        text = texts[number % len(texts)]
        at = text.find("\n", len(text) // 2) + 1
        whole = f"{text[:at]}\n{planted}\n{text[at:]}"
        found = [f for f in scan(whole) if f.rule in RULES_OF[kind]]
        assert any(value[:8] in whole[f.start : f.end] or whole[f.start : f.end] in value for f in found), planted


def _real_texts() -> list[str]:
    files = (path for path in sorted(shared_data("turns").rglob("*")) if path.is_file())
    return [text for path in files for text in _strings(path)]


def _strings(path: Path) -> Iterator[str]:
    for line in path.read_text(errors="replace").splitlines():
        try:
            values = [json.loads(line)]
        except ValueError:
            values = [line]
        while values:
            value = values.pop()
            if isinstance(value, str):
                yield value
            elif isinstance(value, dict | list):
                values += value.values() if isinstance(value, dict) else value


@pytest.mark.parametrize(
    "piece",
    one_of(
        5,
        [
            *("a", "1", "eyJ", "eyJa.", "sk-", "ghp_", "://a:", "a@", "a@b.", "+1", "1 ", "1234 ", "DE12 3456 "),
            *("AKIA", "=", "("),
            *("password=", "password", "token:", "/home/", "/home/a", "-----BEGIN PRIVATE KEY-----", "\\n", "tel 0"),
            *("-", "api_key"),
            *("-----BEGIN RSA PRIVATE KEY-----\nAAAA", "authorization: ", "İ", "\ud800", "://", "xoxb-1-", "00 "),
            *("ssh a@b.io ", "mail ada@acme-corp.io ", "%41", "\\x41", "QUJD", "QUJDREVGR0hJSktM\n", "41 ", "4"),
            *("a'+'", "a+=b\n", "a=", "$a", "a=$a$a\n", "k: |\n  abcd\n", "printf %s%s aa ", 'a""', "curl -u a:b "),
            *("curl -u ", "mysql ", "<|a", "<|im_end|>", "machine a login b ", "a:5432:", "passwd ", "\u200b\u202e"),
            *("\x1b[", "\uff21", "\U000e0041"),
        ],
    ),
)
def test_hostile_text_is_scanned_in_linear_time(piece: str) -> None:
    short, long = (min(_seconds(piece * (size // len(piece))) for _ in range(2)) for size in (8_000, 80_000))
    assert long < 40 * short + 0.2, (short, long)  # 100 times as long, were it quadratic


def _seconds(text: str) -> float:
    started = time.thread_time()
    scan(text)
    return time.thread_time() - started


@pytest.mark.parametrize("kind", FOUND)
def test_escapes_of_json_hide_nothing_and_are_no_part_of_a_value(kind: str) -> None:
    """The arguments of a tool call are JSON in a text."""
    for text, _ in FOUND[kind]:
        inner = json.dumps({"content": f"\n{text}\n"}).replace("/", "\\/").replace("@", "\\u0040")
        found = {(f.rule, json.loads(f'"{inner[f.start : f.end]}"')) for f in scan(inner)}
        assert {(f.rule, text[f.start : f.end]) for f in scan(text)} <= found, inner


def test_an_escaped_address_and_home_are_found_whole() -> None:
    text = json.dumps({"to": "ann.lee@acme-billing.com"}).replace("@", "\\u0040")
    assert [text[f.start : f.end] for f in scan(text)] == ["ann.lee\\u0040acme-billing.com"]
    text = json.dumps({"path": "/home/ann.lee/x"}).replace("/", "\\/")
    assert [text[f.start : f.end] for f in scan(text)] == ["ann.lee"]


def test_a_mask_is_typed_and_consistent_in_a_row() -> None:
    masks = Masks()
    first, second = "mail ada@acme-corp.io or bob@acme-corp.io", "bob@acme-corp.io is away, see /home/jsmith/x"
    done = [masks.apply(text, scan(text), lambda finding: True) for text in (first, second)]
    assert done == ["mail <EMAIL> or <EMAIL_2>", "<EMAIL_2> is away, see /home/<USER>/x"]
    assert masks.apply(first, scan(first), lambda finding: False) == first


def test_the_kinds_and_the_version_of_the_rules() -> None:
    text = "ada@acme-corp.io has " + FOUND["key"][0][1]
    assert kinds_of(scan(text)) == {"secret", "pii"}
    assert len(rule_set_version()) == 16


def test_texts_are_read_where_a_value_has_a_name_of_the_format_and_where_a_key_is_one() -> None:
    key, mail = FOUND["key"][4][1], "ada.lovelace@acme-corp.io"
    tool = {"type": "function", "parameters": {"id": {"description": f"as in {key}"}, "kind": f"export T={key}"}}
    call = {"id": "call_1", "arguments": {mail: True, key: 1}}
    texts = list(
        texts_of([{"role": "assistant", "content": f"data:image/png {key}", "tools": [tool], "calls": [call]}])
    )
    assert texts == [f"data:image/png {key}", f"as in {key}", f"export T={key}", mail, key]
    assert list(texts_of({"role": "user", "content": "data:image/png;base64,iVBORw0KGgo="})) == []
