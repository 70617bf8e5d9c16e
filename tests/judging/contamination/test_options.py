"""Multiple-choice questions whose options stand in another order, or under other labels."""

from collections.abc import Sequence

import pytest

from tests.judging.contamination.test_contain import matches, row, said

STEM = "Which enzyme unwinds the double helix ahead of the fork during replication in bacteria?"
CHOICES = ("Primase", "Helicase", "Ligase", "Topoisomerase I")
PASSAGE = "Bacteria copy their whole genome in about forty minutes, and start again before they have finished.\n\n"


def chosen(layout: str, options: Sequence[str] = CHOICES, stem: str = STEM) -> str:
    names = {"A. ": "ABCD", "(a) ": "abcd", "1) ": "1234", "- ": "----", "": "    "}[layout]
    lines = [layout.replace(layout.strip("(.) ") or " ", name) + one for name, one in zip(names, options, strict=True)]
    return f"{stem}\n{(' ' if layout == '(a) ' else chr(10)).join(lines)}"


@pytest.mark.parametrize("trained", ["A. ", "(a) ", "1) ", "- "])
@pytest.mark.parametrize(
    ("held", "answer"), [("A. ", "B"), ("(a) ", "(b) Helicase"), ("1) ", "2"), ("- ", "Helicase"), ("", "1")]
)
def test_a_question_with_options_in_another_order_is_contained(held: str, answer: str, trained: str) -> None:
    other = said(f"Question 3: {chosen(trained, CHOICES[::-1])}\nAnswer:", "C")
    assert [match.row for match in matches([row(chosen(held), answer)], [other])] == [0]


@pytest.mark.parametrize(
    "question",
    [
        chosen("A. ", stem="Which enzyme joins the fragments of the lagging strand?"),
        chosen("A. ", ("Gyrase", "Nuclease", "Kinase", "Lyase"), PASSAGE + "Which one of these is it?"),
    ],
)
def test_another_question_with_the_same_options_or_words_is_clean(question: str) -> None:
    held = [row(chosen("A. "), "B"), row(chosen("1) ", stem=PASSAGE + STEM), "2")]
    assert matches(held, [said(question, "B")]) == []
