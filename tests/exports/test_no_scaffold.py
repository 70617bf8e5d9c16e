"""Nothing of the raw exchange, neither scaffold nor prose, is in an exported row."""

import inspect
from pathlib import Path
from typing import Any

import orjson
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings
from hypothesis import strategies as st

import curation.exports
from curation.exports.rows.session import session_texts
from curation.trajectories.models import Outcome, Strategy
from curation.trajectories.recorded import RecordedTexts
from tests.exports.exporting import content, export_of, make_kept, make_pair
from tests.factories import make_project, make_scenario, make_trajectory

RECIPE = {"formats": ["sft-messages", "dpo"], "metadata": True}
SCAFFOLD = "SCAFFOLDWORD Answer with one command per turn in a fenced block."
THINKING = "<think>PONDERWORD the queue must be read first</think>"
PROSE = "PROSEWORD Certainly! I will now look at the queue."
WORDS = (b"SCAFFOLDWORD", b"PONDERWORD", b"PROSEWORD", b"fenced", b"Certainly", b"<think", b"```sh")
# Letters that no terminal of these tests shows, so that one in a row comes from the exchange.
foreign = st.text("ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩ", min_size=3)
lines = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1).filter(str.strip)


def exchange(*commands: str) -> list[dict[str, str]]:
    """Return a raw exchange as it is stored: instructions, then prose, thinking and a fenced command per turn."""
    said = [{"role": "system", "content": SCAFFOLD}]
    for command in commands:
        said.append({"role": "assistant", "content": f"{THINKING}{PROSE}\n```sh\n{command}\n```"})
        said.append({"role": "user", "content": f"{SCAFFOLD}\n(output of {command})"})
    return said


@pytest.mark.django_db(transaction=True)
def test_no_word_of_the_raw_exchange_is_in_any_file() -> None:
    project = make_project()
    scenario = make_scenario(project)
    kept = make_kept(project, scenario, exchange=exchange("todo --help", "todo"))
    failed = make_trajectory(
        project, scenario, outcome=Outcome.CHECKER_FAILED, commands=("ls",), exchange=exchange("ls")
    )
    for strategy in Strategy.values:
        make_pair(kept, failed, strategy)
    with CaptureQueriesContext(connection) as queries:
        export = export_of(project, RECIPE)
    assert export.counts["rows"] == {"sft-messages": {"train": 1}, "dpo": {"train": 2}}
    for file in export.files.all():
        found = content(export, file.name)
        assert [word for word in WORDS if word in found] == [], file.name
    # By construction: the column is not even selected.
    assert not [query["sql"] for query in queries if '"exchange"' in query["sql"] or ".exchange" in query["sql"]]


def test_no_module_of_exports_names_the_raw_exchange_as_a_column() -> None:
    folder = Path(inspect.getfile(curation.exports)).parent
    naming = [path.name for path in folder.rglob("*.py") if "exchange" in path.read_text().replace("raw exchange", "")]
    assert naming == []


@given(commands=st.lists(lines, min_size=1), outputs=st.lists(lines, min_size=1), hidden=st.lists(foreign, min_size=4))
@settings(max_examples=60)
def test_messages_have_the_steps_texts_and_nothing_else(
    commands: list[str], outputs: list[str], hidden: list[str]
) -> None:
    """Other keys of a step, here with prose, are dropped for any commands and outputs."""
    reply, thinking, note, cut = hidden[:4]
    steps: list[dict[str, Any]] = [{"source": "user", "message": "welcome $ ", "extra": {"prompt": "$ ", "note": note}}]
    for command, output in zip(commands, outputs, strict=False):
        shown = {"results": [{"content": f"{output}$ ", "extra": {"prompt": "$ ", "exit_code": 0, "cut": cut}}]}
        steps.append({"source": "agent", "message": f"run {command}", "extra": {"reply": reply}, "observation": shown})
        steps[-1]["reasoning_content"] = thinking
    steps.append({"source": "agent", "message": "exit", "extra": {"reply": reply}})
    session = session_texts(RecordedTexts(steps, {}, {}), is_shell=True, reasoning=False)
    shown_texts = [
        text
        for step in steps
        for text in (step["message"], *(one["content"] for one in step.get("observation", {}).get("results", ())))
    ]
    assert [message["content"] for message in session.messages] == shown_texts
    assert {key for message in session.messages for key in message} == {"role", "content"}
    written = orjson.dumps(session.messages).decode()
    assert not [text for text in hidden if text in written]
