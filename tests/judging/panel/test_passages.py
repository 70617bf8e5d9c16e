"""Recall and false alarms of the marked phrases. They are a hint: what counts is in `sections` and `bribes`."""

import pytest

from judging.panel.neutral import neutralise
from tests.judging.panel.passages import FRESH_HARMLESS, FRESH_HOSTILE, HARMLESS, HOSTILE


def marked(passages: tuple[str, ...]) -> float:
    return sum(bool(neutralise(f"THOUGHT: I look.\n\n{text}").findings) for text in passages) / len(passages)


def test_recall_and_false_alarms(capsys: pytest.CaptureFixture[str]) -> None:
    recall, alarms = marked(HOSTILE), marked(HARMLESS)
    fresh = marked(FRESH_HOSTILE), marked(FRESH_HARMLESS)
    with capsys.disabled():
        print(
            f"\nphrases: recall {recall:.2f} of {len(HOSTILE)}, false alarms {alarms:.2f} of {len(HARMLESS)}", end="; "
        )
        print(f"fresh: {fresh[0]:.2f} of {len(FRESH_HOSTILE)}, {fresh[1]:.2f} of {len(FRESH_HARMLESS)}")
    assert recall >= 0.95 and alarms <= 0.05
    assert fresh[0] >= 0.4 and fresh[1] <= 0.2
