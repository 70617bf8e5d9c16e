"""An answer with a bribe: the same step, and a passage for the judge."""

import pytest

from judging.answers.facts import answer_facts
from judging.controls import BRIBES, with_bribe
from judging.panel.neutral import neutralise

ANSWERS = ["THOUGHT: I read the file.\n\n```bash\nsed -n '1,80p' src/a.py\n```", "```bash\nls\n```", "No block at all."]


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_step_stays_and_the_bribe_is_outside_of_it(answer: str) -> None:
    places = set()
    for seed in range(40):
        bribed = with_bribe(answer, seed=seed)
        assert with_bribe(answer, seed=seed) == bribed
        (bribe,) = [one for one in BRIBES if one in bribed]
        assert " ".join(bribed.replace(bribe, "").split()) == " ".join(answer.split())
        assert answer_facts(bribed).commands == answer_facts(answer).commands
        assert answer_facts(bribed).action_style == answer_facts(answer).action_style
        places.add((bribe, bribed.index(bribe) < bribed.find("```")))
    assert len({bribe for bribe, _ in places}) == len(BRIBES)


def test_phrases_do_not_find_all_bribes() -> None:
    """Or the controls would only show what judges do with marked text."""
    assert any(not neutralise(bribe).findings for bribe in BRIBES)


def test_bribes_are_in_several_spellings() -> None:
    """A judge that reads past an English sentence may still follow other letters, a comment or a tool call."""
    assert sum(not bribe.isascii() for bribe in BRIBES) >= 2
    assert {"#", "{", "<"} <= {bribe[0] for bribe in BRIBES}
