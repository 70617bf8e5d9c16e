"""Scripted operators and the scripted teacher: their replies depend on their input, and on nothing else."""

import json

import pytest

from curation.llm.scripted import reply
from curation.llm.scripted.operators import written_steps
from curation.llm.scripted.teacher import wanted
from sandbox.agent.action import FormatError, ending_of, read_action

Chat = list[dict[str, str]]
SCAFFOLD = {"role": "system", "content": "You operate a terminal; leave with exit. A file such as NOTICE may help."}
PROMPT = "agent@host:~$ "
HARBOUR = "Harbour office. Notes for the watch are kept by: berth"
REQUEST = (
    "Write a scenario.\n- task: archive\n- provider: fifo\n- announcement: env\n- doc_depth: layered\n- difficulty: 4"
)


def play(model: str, *shown: str, sample_index: int = 0) -> list[str]:
    """The actions of an operator that is shown these texts, one after the other."""
    messages: Chat = [SCAFFOLD]
    actions = []
    for text in shown:
        messages.append({"role": "user", "content": f"{text}\n{PROMPT}"})
        said = reply(model, messages, sample_index=sample_index).text
        messages.append({"role": "assistant", "content": said})
        actions.append(read_action(said))
    return actions


def steps_of(scenario: str) -> list[str]:
    return next(list(steps) for said, steps in written_steps().items() if said in scenario)


def test_the_solver_plays_the_written_steps_once_it_has_seen_the_announcement() -> None:
    steps = steps_of(HARBOUR)
    assert play("operator-solver", HARBOUR, *["…"] * (len(steps) - 1)) == steps
    assert steps[-1] == "exit"


def test_the_solver_looks_for_an_announcement_that_the_login_does_not_show() -> None:
    notice = "Stage management. The calls of the evening are with the prompter."
    assert play("operator-solver", "", "NOTICE", notice)[:3] == ["ls -a", "cat NOTICE", "prompter --help"]
    told = "NOTICE=requests at the pier: pier"
    assert play("operator-solver", "", ".  ..", told)[:3] == ["ls -a", "env", "pier help"]


def test_the_solver_leaves_what_it_does_not_know() -> None:
    assert play("operator-solver", "Welcome", "NOTICE", "Ask the oracle", "PATH=/bin") == [
        *("ls -a", "cat NOTICE", "env", "exit")
    ]


def test_mixed_solves_leaves_early_or_circles_and_always_adds_prose() -> None:
    steps = steps_of(HARBOUR)
    shown = [HARBOUR, *["…"] * (len(steps) - 1)]
    solves, leaves, circles = (play("operator-mixed", *shown, sample_index=index) for index in range(3))
    assert solves == steps
    cut = leaves.index("exit")
    assert 1 <= cut < len(steps) - 1 and leaves[:cut] == steps[:cut]
    assert circles[1:] == [steps[1]] * (len(steps) - 1)
    said = reply("operator-mixed", [SCAFFOLD, {"role": "user", "content": HARBOUR}]).text
    assert said.startswith("<think>") and "THOUGHT:" in said and not said.endswith("```")


@pytest.mark.parametrize(
    ("model", "terminal"), [("operator-quitter", "exit"), ("operator-panicker", "panic"), ("operator-looper", "")]
)
def test_the_failing_operators_do_one_thing(model: str, terminal: str) -> None:
    for action in play(model, HARBOUR, "…"):
        ending = ending_of(action)
        assert (ending.terminal if ending else "") == terminal


def test_the_mumbler_gives_no_command_and_the_sleeper_a_long_one() -> None:
    with pytest.raises(FormatError):
        play("operator-mumbler", HARBOUR)
    assert play("operator-sleeper", HARBOUR) == ["sleep 3600"]


@pytest.mark.parametrize(
    "text",
    [
        REQUEST,
        '{"task": "archive", "provider": "fifo", "announcement": "env", "doc_depth": "layered", "difficulty": 4}',
        "`task` = `archive`, **provider**: fifo; announcement=env doc_depth: 'layered'\ndifficulty: 4",
    ],
)
def test_the_teacher_finds_the_combination_in_any_form(text: str) -> None:
    axes = {"task": "archive", "provider": "fifo", "announcement": "env", "doc_depth": "layered", "difficulty": "4"}
    assert wanted(text) == axes


def test_the_teacher_writes_what_it_was_asked_for_and_mends_what_was_refused() -> None:
    wrong = 0
    for index in range(12):
        messages: Chat = [{"role": "user", "content": REQUEST}]
        first = json.loads(reply("teacher", messages, sample_index=index).text)
        assert first["axes"] == {
            **{"task": "archive", "provider": "fifo", "announcement": "env", "doc_depth": "layered"},
            "difficulty": 4,
        }
        wrong += "checker" not in first
        told = {"role": "user", "content": "checker: missing in a bundle of task: cleanup."}
        again = [*messages, {"role": "assistant", "content": json.dumps(first)}, told]
        mended = json.loads(reply("teacher", again, sample_index=index).text)
        assert mended == {**first, "checker": mended["checker"]}
    assert 1 <= wrong <= 8
