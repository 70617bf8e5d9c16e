"""Held-out rows in scripts without blanks, in listings, short tasks and halves, and texts that many files share."""

import re
from collections.abc import Sequence

import pytest

from judging.contamination.rows import Messages
from tests.judging.contamination.test_contain import matches, row, said

HEADER = (
    "#!/usr/bin/env python3\nfrom __future__ import annotations\nimport argparse\nimport json\nimport logging\n"
    "import os\nimport pathlib\nimport re\nimport subprocess\nimport sys\nfrom collections import Counter\n"
)
SHEEP = (
    "A farmer has 17 sheep and all but nine of them run away during a thunderstorm. How many sheep does the farmer "
    "still have in the barn the next morning?"
)
APPLES = "小明有十二个苹果，他把其中的三个给了妹妹，又从市场买了五个。请问现在小明一共有多少个苹果？"
BOOKS = (
    "太郎は本を三十冊持っていました。友達に八冊貸して、図書館から五冊借りました。太郎の手元には今何冊の本がありますか。"
)
SLEEPS = ("Translate to German: the cat sleeps on the warm roof", "Die Katze schläft auf dem warmen Dach")


@pytest.mark.parametrize(
    ("question", "answer", "messages"),
    [
        (APPLES, "小明现在有十四个苹果。", said(f"请先看例子。例题一：{APPLES}答案是十四。三加四等于多少？", "七")),
        (BOOKS, "二十七冊です。", said(f"例を示します。{BOOKS} 答え：二十七冊。次の問題：五足す六は？", "十一")),
        (
            "What is the capital of Peru?",
            "Lima",
            said("Q: What is the capital of Peru?\nA: Lima\nQ: And of Chile?", "?"),
        ),
        (*SLEEPS, said("Please translate 'the cat sleeps on the warm roof'.", f"{SLEEPS[1]}. 'Dach' is dative.")),
        (SHEEP, "Nine.", said("cat -n", re.sub(r"((?:\S+ ){6})", "\\1\n  12\t", f"{SHEEP} "))),
        (SHEEP, "Nine.", [*said(SHEEP.partition(" How")[0], "Go on."), *said(f"How{SHEEP.partition(' How')[2]}", "9")]),
    ],
    ids=["Chinese", "Japanese", "answer of one word", "its text in other instructions", "line numbers", "two turns"],
)
def test_a_row_is_found_in_other_scripts_listings_and_halves(question: str, answer: str, messages: Messages) -> None:
    assert [match.row for match in matches([row(question, answer)], [messages])] == [0]


@pytest.mark.parametrize(
    ("question", "answer", "messages"),
    [
        (
            APPLES,
            "十四个苹果",
            said("小红有八本书，她把其中的两本借给了同学，又买了四本。请问小红手里有多少本书？", "十本"),
        ),
        (
            "What is the capital of Peru?",
            "Lima",
            said("Tell me about Lima and the capital of Chile.", "Lima is large."),
        ),
        (
            "Write a script that adds a column.",
            f"{HEADER}print(sum(int(line.split(',')[1]) for line in sys.stdin))",
            said(
                "Write a script that lists the users.", f"{HEADER}[print(row.split(':')[0]) for row in open('passwd')]"
            ),
        ),
    ],
    ids=["Chinese", "answer of one word", "imports"],
)
def test_a_text_of_another_task_does_not_contain_a_row(question: str, answer: str, messages: Messages) -> None:
    assert matches([row(question, answer)], [messages]) == []


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
