"""Facts of a rollout by the sandbox's record of executed programs."""

import pytest

from curation.scenarios.bundles.document import parse_bundle
from curation.trajectories.rollout.record import asked_facts
from sandbox.protocol import ProgramRun
from tests.factories import AXES
from tests.factories import BUNDLE as NAMELESS

BUNDLE = {**NAMELESS, "name": "todo"}
TODO = "/usr/local/bin/todo"
PAGE = {"path": "/opt/todo.txt", "content": "NAME\n  todo\nSYNOPSIS\n  todo list\n"}


def facts(depth: str, *calls: str, page: bool = False) -> tuple[str, ...]:
    fixtures = [*BUNDLE["fixtures"], *([PAGE] if page else [])]
    bundle = parse_bundle({**BUNDLE, "fixtures": fixtures, "axes": {**AXES, "doc_depth": depth}})
    return tuple(asked_facts(bundle, [ProgramRun(TODO, tuple(call.split())) for call in calls]).values())


@pytest.mark.parametrize(
    ("depth", "calls", "read", "asked"),
    [
        ("help", (), "no", "no"),
        ("help", ("--help",), "yes", "no"),
        ("help", ("--help", ""), "yes", "yes"),
        ("help", ("list",), "no", "yes"),
        ("layered", ("help lists", "take"), "yes", "yes"),
        ("layered", ("",), "unknown", "unknown"),
        ("usage-error", ("",), "yes", "no"),
        ("usage-error", ("ls",), "no", "yes"),
        ("man-page", ("--man", "list"), "yes", "yes"),
    ],
)
def test_what_was_executed_says_what_was_read_and_asked(
    depth: str, calls: tuple[str, ...], read: str, asked: str
) -> None:
    assert facts(depth, *calls) == (read, asked)


def test_nobody_knows_who_has_read_a_file() -> None:
    assert facts("man-page", "list", page=True) == ("unknown", "yes")


def test_without_a_record_nothing_is_known() -> None:
    assert set(asked_facts(parse_bundle(BUNDLE), None).values()) == {"unknown"}


def test_a_page_that_a_program_of_the_scenario_shows_is_read() -> None:
    reader = {"path": "/usr/local/bin/man", "mode": "755", "content": "#!/bin/sh\n"}
    bundle = parse_bundle({**BUNDLE, "fixtures": [*BUNDLE["fixtures"], reader]})
    runs = [ProgramRun(reader["path"], ("todo",))]
    assert tuple(asked_facts(bundle, runs).values()) == ("yes", "no")
