"""A transcript as steps: what a reader of the page sees, however long or hostile it is."""

import time

from curation.trajectories.session.find import find_turns
from curation.trajectories.session.steps import (
    CHUNK,
    WINDOW,
    Part,
    Step,
    opening,
    places_of,
    raw_text,
    step_of_turn,
    stretch_of,
    window,
)
from tests.factories import PROMPT, make_turns


def steps_of(parts: list[Part]) -> list[Step]:
    return [step for part in parts for step in part.steps]


def numbers(parts: list[Part]) -> list[int]:
    return [step.place.number for step in steps_of(parts)]


def test_a_step_is_a_command_and_what_came_back() -> None:
    turns = make_turns("ls", "false", outputs=("a\nb\n",))
    turns[4]["exit_code"] = 1
    first, ls, false, leave = steps_of(opening(turns))
    assert first.command is None and first.output and first.output.html == "Work is announced by: todo"
    assert ls.place.prompt == PROMPT and ls.output and ls.output.html == "a\nb" and not ls.failed
    assert false.output is None and false.failed
    assert leave.command and leave.command.html == "exit" and leave.output is None


def test_the_prompt_before_a_command_is_the_one_that_the_terminal_showed() -> None:
    turns = make_turns("cd /srv", "ls")
    turns[2] |= {"text": "agent@host:/srv$ ", "prompt": "agent@host:/srv$ "}
    assert [place.prompt for place in places_of(turns)] == ["", PROMPT, "agent@host:/srv$ ", PROMPT]


def test_the_file_is_the_session_as_the_terminal_showed_it() -> None:
    turns = make_turns("ls", outputs=("a\n",), terminal="panic no way")
    assert raw_text(turns) == f"Work is announced by: todo\n{PROMPT}ls\na\n{PROMPT}panic no way\n"


def test_control_sequences_and_markup_do_nothing() -> None:
    turns = make_turns("echo '<b>'", outputs=("\x1b[31mred\x1b[0m\x1b]0;title\x07<script>\u202e\n",))
    step = steps_of(opening(turns))[1]
    assert step.command and "<b>" not in step.command.html
    assert step.output and "<script>" not in step.output.html and "\x1b" not in step.output.html
    assert "red" in step.output.html and "U+202E" in step.output.html


def test_a_long_session_opens_with_its_ends_and_a_gap() -> None:
    turns = make_turns(*(f"echo {n}" for n in range(3000)))
    began = time.perf_counter()
    parts = opening(turns)
    assert time.perf_counter() - began < 1
    gap = parts[1].gap
    assert gap and gap.long and len(steps_of(parts)) + gap.count == 3002
    assert numbers(parts)[0] == 0 and numbers(parts)[-1] == 3001
    assert numbers(window(turns, start=gap.start, end=gap.end)) == list(range(gap.start, gap.start + WINDOW))
    last = window(turns, start=gap.start, end=gap.end, bottom=True)
    assert last[0].gap and numbers(last)[-1] == gap.end - 1


def test_a_wanted_step_is_shown_wherever_it_stands() -> None:
    turns = make_turns(*(f"echo {n}" for n in range(300)))
    assert 150 in numbers(opening(turns, around=150))
    assert 150 not in numbers(opening(turns))
    assert step_of_turn(turns, 301) == 151 and step_of_turn(turns, 10_000) is None


def test_a_short_session_is_shown_whole() -> None:
    parts = opening(make_turns(*(f"echo {n}" for n in range(58))))
    assert len(parts) == 1 and numbers(parts) == list(range(60))


def test_of_a_megabyte_the_beginning_is_drawn_and_the_rest_on_demand() -> None:
    output = "".join(f"line {n}\n" for n in range(100_000))
    turns = make_turns("cat big", outputs=(output,))
    shown = steps_of(opening(turns))[1].output
    assert shown and len(shown.html) < 1000 and shown.html.endswith("\n") and shown.next_start
    more = stretch_of(turns, 2, shown.next_start)
    assert len(more.html) == CHUNK and more.start == shown.next_start
    assert shown.left == len(output) - shown.next_start
    assert stretch_of(turns, 2, len(output) + 5).html == ""


def test_one_endless_line_is_cut_too() -> None:
    shown = steps_of(opening(make_turns("yes", outputs=("y" * 1_000_000,))))[1].output
    assert shown and len(shown.html) <= 4000 and shown.next_start


def test_what_does_not_follow_the_pattern_is_shown_all_the_same() -> None:
    turns = make_turns("ls", outputs=("a\n",), terminal="")
    turns.insert(1, {"kind": "output", "text": "left over", "prompt": ""})
    assert [place.turns for place in places_of(turns)] == [(0,), (1,), (2, 3)]
    assert opening([]) == [] and raw_text([]) == ""


def test_find_names_the_turns_and_where_to_begin_showing_them() -> None:
    turns = make_turns("grep Needle x", "cat big", outputs=("", "hay\n" * 50_000 + "the NEEDLE\n"))
    found = find_turns(turns, "needle")
    assert found.total == 2 and [hit.step for hit in found.hits] == [1, 2]
    big = found.hits[1]
    assert "the NEEDLE" in big.line and big.count == 1
    piece = stretch_of(turns, big.turn, big.start, wanted="needle")
    assert '<mark class="found">NEEDLE</mark>' in piece.html
    assert find_turns(turns, "").total == 0
