"""Each planted fault is in the command alone, is plain, and is only planted where it is a fault."""

import re
import time

import pytest

from judging.answers.facts import answer_facts
from judging.messages import bash_blocks
from judging.panel.neutral import neutralise
from judging.planted_faults import BRIBES, PlantedFault, faults_in_turn, plant, with_bribe

ANSWER = "THOUGHT: I read main.py first.\n\n```bash\nsed -n '1,80p' src/app/main.py\n```\n"
HISTORY = "src/app/main.py src/app/util.py docs/README.md pip install x==1.2.3"


def script(answer: str | None) -> str:
    assert answer is not None
    (block,) = bash_blocks(answer)
    return block.script.strip()


def test_an_empty_command_leaves_an_empty_block() -> None:
    planted = plant(ANSWER, PlantedFault.EMPTY_COMMAND, history=HISTORY, seed=1)
    assert script(planted) == "" and planted is not None and planted.startswith("THOUGHT: I read main.py first.")
    assert answer_facts(planted).commands == 0


def test_a_second_block_breaks_the_protocol() -> None:
    planted = plant(ANSWER, PlantedFault.TWO_BLOCKS, history=HISTORY, seed=1)
    assert planted is not None and answer_facts(planted).blocks == 2 and ANSWER.strip() in planted


@pytest.mark.parametrize("seed", range(5))
def test_a_wrong_file_is_another_one_of_the_history_with_the_same_ending(seed: int) -> None:
    assert (
        script(plant(ANSWER, PlantedFault.WRONG_FILE, history=HISTORY, seed=seed)) == "sed -n '1,80p' src/app/util.py"
    )


def test_an_invented_path_is_nowhere() -> None:
    said = script(plant(ANSWER, PlantedFault.INVENTED_PATH, history=HISTORY, seed=1))
    path = said.split()[-1]
    assert re.fullmatch(r"src/app/main_[a-z]+\.py", path) and path not in HISTORY
    taken = HISTORY + " ".join(f"main_{word}.py" for word in ("legacy", "internal", "shim", "adapter"))
    assert script(plant(ANSWER, PlantedFault.INVENTED_PATH, history=taken, seed=1)).endswith("main_compat.py")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("fault", list(PlantedFault))
def test_the_same_seed_plants_the_same_fault(fault: PlantedFault, seed: int) -> None:
    assert plant(ANSWER, fault, history=HISTORY, seed=seed) == plant(ANSWER, fault, history=HISTORY, seed=seed)


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ("THOUGHT: nothing to run.", PlantedFault.EMPTY_COMMAND),
        ("THOUGHT: empty.\n\n```bash\n\n```\n", PlantedFault.EMPTY_COMMAND),
        (ANSWER + "\n```bash\nls\n```\n", PlantedFault.TWO_BLOCKS),
        ("THOUGHT: look.\n\n```bash\nls -la\n```\n", PlantedFault.WRONG_FILE),
        ("THOUGHT: look.\n\n```bash\nls -la\n```\n", PlantedFault.INVENTED_PATH),
        # Any name is right for a file that is made.
        ("THOUGHT: write it.\n\n```bash\ntouch reproduce.py\n```\n", PlantedFault.INVENTED_PATH),
        ("THOUGHT: version.\n\n```bash\npip install 1.2.3\n```\n", PlantedFault.INVENTED_PATH),
    ],
)
def test_a_fault_without_a_place_is_not_planted(answer: str, fault: PlantedFault) -> None:
    assert plant(answer, fault, history=HISTORY, seed=1) is None


def test_faults_go_round_and_skip_what_does_not_fit() -> None:
    kinds = [found[0] for seed in range(4) if (found := faults_in_turn(ANSWER, history=HISTORY, seed=seed))]
    assert kinds == list(PlantedFault)
    plain = "THOUGHT: look.\n\n```bash\nls -la\n```\n"
    fitting = [faults_in_turn(plain, history="", seed=seed) for seed in range(4)]
    assert {each[0] for each in fitting if each} == {
        PlantedFault.EMPTY_COMMAND,
        PlantedFault.TWO_BLOCKS,
    } and None not in fitting
    assert faults_in_turn("No command.", history="", seed=0) is None


def test_a_long_word_in_the_history_takes_no_time() -> None:
    began = time.thread_time()
    history = f"{HISTORY} {'aB3' * 6000} src/app/other.py"
    assert script(plant(ANSWER, PlantedFault.WRONG_FILE, history=history, seed=1)).endswith(".py")
    assert time.thread_time() - began < 1


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
