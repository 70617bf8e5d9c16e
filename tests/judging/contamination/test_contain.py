"""Held-out rows inside longer texts, and rows of the same kind that are clean."""

import html
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence

import pytest

from judging.contamination.contain import Containment
from judging.contamination.find import Match, contamination
from judging.contamination.levels import Level
from judging.contamination.normalise import VOLATILE_LABELS
from judging.contamination.rows import ComparedRow, Messages, TrainingRow
from tests.parts import shared_data

QUESTIONS = [
    ("A farmer keeps 17 goats and sells four of them at the market on Monday. How many goats are left?", "13 goats"),
    ("Which gas do green plants take up from the air in daylight to build sugar out of it?", "It is carbon dioxide."),
    (
        "Write a function that returns the second largest number of a list without sorting it first.",
        "def second(xs): …",
    ),
    ("List the names of all queues.", "aws sqs list-queues"),
]


def row(question: str, answer: str) -> ComparedRow:
    return ComparedRow.of([("system", "You are helpful."), ("user", question)], answer)


def said(question: str, answer: str, system: str = "") -> Messages:
    return [*([("system", system)] if system else []), ("user", question), ("assistant", answer)]


def inside(number: int) -> dict[str, Sequence[Messages]]:
    question, answer = QUESTIONS[number]
    filler = "Here is a text that has nothing to do with it, and goes on for a while before it comes to an end."
    return {
        "longer prompt": [said(f"{filler}\n\n{question}\n\n{filler}", f"{filler} {answer}")],
        "few-shot example": [
            said(f"Example:\nQ: {question}\nA: {answer}\n\nNow: what is the capital of Peru?", "Lima")
        ],
        "example of the system": [said("Next one, please.", "Of course.", f"Q: {question}\nA: {answer}")],
        "earlier turn": [[*said(question, answer), *said("Thank you! And what about Peru?", "Lima is its capital.")]],
        "explained answer": [said(f"Please explain. {question}", f"Let me explain: {answer}. This follows from it.")],
        "rejected side": [said("What is next?", "I do not know."), said("What is next?", f"{question} {answer}")],
        "capitals and white space": [said(f"{filler} {question.upper()}".replace(" ", "  "), answer.upper())],
    }


def matches(rows: Sequence[ComparedRow], *training: Sequence[Messages]) -> list[Match]:
    trained = [TrainingRow(sides, line=line) for line, sides in enumerate(training)]
    return [match for match in contamination(rows, trained) if match.levels[0].contaminates]


@pytest.mark.parametrize("kind", inside(0))
def test_a_row_inside_a_training_row_is_found(kind: str) -> None:
    rows = [row(*question) for question in QUESTIONS]
    for number in range(len(QUESTIONS)):
        found = matches(rows, [said("What is the capital of Peru?", "Lima")], inside(number)[kind])
        assert {(match.row, match.train_row) for match in found} == {(number, 1)}, (kind, number)


@pytest.mark.parametrize(
    "written",
    [
        json.dumps,
        lambda text: json.dumps(json.dumps({"question": text})),
        lambda text: "<p>" + html.escape(text).replace("\n", "</p><p>") + "</p>",
        lambda text: text.replace("\n", "<br/>"),
    ],
)
def test_a_row_is_found_in_a_string_of_json_and_in_a_page(written: Callable[[str], str]) -> None:
    """An agent prints the file that has it."""
    question = 'Is "Fähre" a verb?\nA) a noun\nB) a verb\nC) an adverb'
    output = f"{written(question)} 🙂 \\ud83d \\u0000"

    (found,) = matches([row(question, "A")], [[("user", "Go on."), ("tool", output), ("assistant", "It is done.")]])

    assert found.levels == (Level.CONTAINED,)
    assert "\0" not in found.training.prompt and found.training.prompt.encode()


def test_the_text_around_a_contained_row_is_shown_with_its_share() -> None:
    (found,) = matches([row(*QUESTIONS[1])], inside(1)["few-shot example"])

    assert (found.levels, found.share) == ((Level.CONTAINED,), 1.0)
    assert "Example:" in found.training.prompt and QUESTIONS[1][0] in found.training.prompt


def test_half_of_a_row_is_contained_and_a_third_is_not() -> None:
    words = " ".join(f"w{number}" for number in range(90))
    held = row(words, "yes")

    half, third = (said(" ".join(words.split()[:count]) + " and so on", "no") for count in (60, 30))

    assert [match.train_row for match in matches([held], [half], [third])] == [0]
    assert matches([held], [third]) == []


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        (
            "บริษัทแห่งหนึ่งมีพนักงานสี่สิบแปดคน ครึ่งหนึ่งเดินทางด้วยรถไฟฟ้า ที่เหลือเดินทางด้วยรถเมล์กี่คน",
            "ยี่สิบสี่คน",
            "บริษัทแห่งหนึ่งมีรถบรรทุกสิบคัน ขายไปสามคัน เหลือกี่คัน",
        ),
        ("ຈົ່ງອະທິບາຍວ່າເປັນຫຍັງທ້ອງຟ້າຈຶ່ງມີສີຟ້າ ໃນເວລາກາງເວັນ", "ເພາະອາກາດກະຈາຍແສງ", "ຈົ່ງອະທິບາຍວ່າເປັນຫຍັງນ້ຳທະເລຈຶ່ງເຄັມ"),
        ("ទន្លេសាបជាបឹងធំជាងគេ ហេតុអ្វីបានជាទឹកហូរបញ្ច្រាស", "ព្រោះទឹកទន្លេមេគង្គ", "ទន្លេមេគង្គហូរកាត់ប្រទេសណាខ្លះ"),
        ("မြန်မာနိုင်ငံ၏ အရှည်ဆုံးမြစ်သည် မည်သည့်မြစ်ဖြစ်သနည်း", "ဧရာဝတီမြစ်", "ရန်ကုန်မြို့တွင် လူဦးရေ မည်မျှရှိသနည်း"),
    ],
    ids=["Thai", "Lao", "Khmer", "Burmese"],
)
def test_a_text_without_blanks_between_words_is_found_with_other_blanks(question: str, answer: str, other: str) -> None:
    glued = f"{other}{question.replace(' ', '')}{answer}{other}"
    assert [match.row for match in matches([row(question, answer)], [said(glued, "OK")])] == [0]
    assert matches([row(question, answer)], [said(other, "OK")]) == []


def templated(seed: int, count: int) -> Iterator[ComparedRow]:
    """Rows of one long template with two words of their own."""
    draw = random.Random(seed)
    for _ in range(count):
        city, thing = (f"{draw.choice('bdfglmnrst')}{draw.randrange(10_000)}" for _ in range(2))
        task = (
            f"You are a clerk of the city of {city}. Read the form below with care, fill in every field that is empty,"
            f" and send it to the office for {thing} before noon. Answer with one line, and give no reasons."
        )
        yield ComparedRow.of([("user", task)], f"send form {thing}")


def test_rows_of_one_template_are_not_contained_in_each_other() -> None:
    rows, others = list(templated(1, 30)), list(templated(2, 200))
    training = [[said(other.opening, other.answer)] for other in others]

    assert [match for match in matches(rows, *training) if Level.CONTAINED in match.levels] == []
    assert [match for match in matches(rows[:1], *training) if Level.CONTAINED in match.levels] == []
    planted = [said(f"One of yesterday: {rows[3].opening} {rows[3].answer}\n\nAnd today?", "Nothing.")]
    found = matches(rows, *training, planted)
    assert {(match.row, match.train_row) for match in found if Level.CONTAINED in match.levels} == {(3, 200)}


def conversation(value: dict[str, list[dict[str, str]]]) -> Messages:
    return [(message["role"], message["content"]) for message in value["messages"]]


def published(name: str) -> list[Messages]:
    return [conversation(json.loads(line)) for line in shared_data("aws_cli", f"{name}.jsonl").open()]


def test_every_row_of_the_published_split_is_contained_in_its_training_data() -> None:
    containment, training = Containment(VOLATILE_LABELS), published("train")
    for *before, (_, answer) in published("val"):
        containment.add(ComparedRow.of(before, answer))
    texts = [TrainingRow([messages]).text for messages in training]
    containment.without_common(texts[:1_000])

    assert len({found.row for text in texts for found in containment.find(text)}) == 150


def test_of_other_tasks_of_the_published_data_only_the_one_that_repeats_a_row_contains_it() -> None:
    """Half of the tasks are held out; of the others, those with none of their answers are the training data. One of
    them asks for the volume of a held-out row, and then for a tag."""
    tasks = {messages[1][1].split("\n")[0] for messages in published("train")}
    held_out = set(sorted(tasks)[::2])
    rows = [ComparedRow.of(m[:-1], m[-1][1]) for m in published("val") if m[1][1].split("\n")[0] in held_out]
    answers = {one.answer for one in rows}
    training = [[m] for m in published("train") if m[1][1].split("\n")[0] not in held_out and m[-1][1] not in answers]
    assert len(rows) > 50 and len(training) > 300

    found = [match for match in matches(rows, *training) if Level.CONTAINED in match.levels]
    assert [rows[match.row].answer for match in found] == [
        "aws ec2 create-volume --size 20 --availability-zone us-east-1a"
    ]
    assert rows[found[0].row].answer in training[found[0].train_row][0][-1][1]


def test_made_up_rows_of_the_same_kind_are_clean() -> None:
    """Prompts of the published data with tasks that nobody asked for."""
    rows = [ComparedRow.of(messages[:-1], messages[-1][1]) for messages in published("val")]
    draw = random.Random(3)
    made = []
    for number, (system, (role, text), _) in enumerate(published("val")):
        thing, kind = (f"{draw.choice('bdfglm')}{draw.choice('aeiou')}nt{draw.randrange(100)}" for _ in range(2))
        verb, of = draw.choice(("Rename", "Archive", "Count", "Rotate")), draw.choice(("gateway", "ledger", "mesh"))
        task = f"TASK: {verb} the {of} named '{thing}' with option {kind} in the environment."
        rest = re.sub(
            r"Previous steps:.*?(?=Send your)", "Previous steps:\nNone\n\n", text.partition("\n")[2], flags=re.S
        )
        made.append(
            [[system, (role, f"{task}\n{rest}"), ("assistant", f"aws {of} {verb.lower()} --name {thing} #{number}")]]
        )

    assert matches(rows, *made) == []


def test_an_earlier_turn_is_compared_as_closely_as_the_last_one() -> None:
    short = ComparedRow.of([("user", "Stop it")], "sudo systemctl stop web")
    session = [*said("Stop it", "sudo systemctl stop web"), *said("Thanks", "You are welcome to it.")]

    (found, *_) = matches([short], [session])

    assert Level.EXACT in found.levels and found.training.answer == "sudo systemctl stop web"
