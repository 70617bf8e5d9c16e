"""Groups of texts: planted topics are found and named, and a text of another topic is new."""

import random

import numpy as np

from judging.learning.clusters import Space

TOPICS = {
    "timeout": "the command hangs until the timeout while the network socket waits for a reply",
    "import": "python raises ModuleNotFoundError because the import of the package fails in the interpreter",
    "permission": "permission denied when chmod or sudo touches the protected directory of root",
}
FILLER = ["agent", "file", "shell", "output", "line", "value", "task", "step", "result", "check", "run", "code"]


def text(topic: str, seed: int) -> str:
    drawn = random.Random(seed)
    words = drawn.sample(TOPICS[topic].split(), 9) + drawn.choices(FILLER, k=5)
    drawn.shuffle(words)
    return " ".join(words)


def test_planted_topics_are_the_groups_and_their_words_the_names() -> None:
    topics = [topic for topic in TOPICS for _ in range(20)]
    space = Space([text(topic, place) for place, topic in enumerate(topics)])
    groups = space.groups(range(len(topics)))
    assert len(groups) == 3 and sum(len(group.members) for group in groups) == 60
    for group in groups:
        inside = {topics[member] for member in group.members}
        assert len(inside) == 1
        assert set(group.words) <= {word.lower() for word in TOPICS[inside.pop()].split()}


def test_texts_of_a_topic_that_nobody_reviewed_are_new() -> None:
    known = [text("timeout", place) for place in range(60)]
    pending = [text("timeout", 100 + place) for place in range(30)] + [text("permission", place) for place in range(10)]
    space = Space([*pending, *known])
    new = space.unlike(range(40), range(40, 100))
    assert {place for place, _ in new} >= set(range(30, 40))
    assert len(new) <= 14 and [alike for _, alike in new] == sorted(alike for _, alike in new)


def test_embeddings_decide_where_texts_stand_and_words_still_name_the_groups() -> None:
    texts = [text(topic, place) for topic in ("timeout", "import") for place in range(8)]
    here, there = np.eye(2)
    space = Space(texts, np.array([here if place % 2 else there for place in range(16)]) + 0.01)
    groups = space.groups(range(16))
    assert [len(group.members) for group in groups] == [8, 8]
    assert {place % 2 for place in groups[0].members} in ({0}, {1}) and all(group.words for group in groups)


def test_few_texts_equal_texts_and_texts_without_words_are_one_group() -> None:
    assert [group.members for group in Space(["a lone text"]).groups([0])] == [(0,)]
    assert len(Space(["the same words"] * 9).groups(range(9))) == 1
    assert [len(group.members) for group in Space(["1 2 3"] * 5).groups(range(5))] == [5]
    assert Space(["one", "two"]).groups([]) == []
