"""Held-out rows in scripts without blanks, in listings, short tasks and halves, and texts that many files share."""

import re

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
