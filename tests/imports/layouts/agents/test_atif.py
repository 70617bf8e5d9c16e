import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.imports.layouts.agents import atif
from curation.imports.layouts.session import AgentSession, Json
from curation.imports.sources.rows import RowRefused

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBER = st.integers(0, 10**6)
# Names that ATIF does not know: a later version, or a program's own.
UNKNOWN: st.SearchStrategy[Json] = st.dictionaries(
    st.sampled_from(["x_note", "seed", "a.b"]), st.none() | TEXT | st.lists(NUMBER, max_size=2)
)


def document(*steps: Json, **fields: Any) -> Json:
    numbered = [{"step_id": number, "message": "", **step} for number, step in enumerate(steps, start=1)]
    agent = {"name": "stub", "version": "1.0"}
    return {"schema_version": "ATIF-v1.8", "agent": agent, "steps": numbered, **fields}


@pytest.mark.parametrize("number", [1e30, 2.5, -(10**12)])
def test_a_figure_that_no_run_has_leaves_the_rest_of_the_document(number: float) -> None:
    given = document(
        {"source": "user", "message": "Go."},
        {"source": "agent", "metrics": {"prompt_tokens": number, "completion_tokens": 5}},
        final_metrics={"total_cached_tokens": number, "total_completion_tokens": 5},
    )
    reading = atif.read(copy.deepcopy(given))
    (session,) = reading.sessions
    assert (session.usage.input_tokens, session.usage.output_tokens, session.usage.cached_tokens) == (None, 5, None)
    told = {one["field"] for one in reading.account.entries() if "no such number" in one["becomes"]}
    fields = {"steps[].metrics.prompt_tokens", "final_metrics.total_cached_tokens"}
    assert told == fields or {"prompt_tokens", "cached_tokens"} <= {*session.usage.dropped}
    assert atif.write(session) == given


def test_a_number_where_a_text_belongs_is_still_refused() -> None:
    with pytest.raises(RowRefused, match="source"):
        atif.read(document({"source": 7}))


@st.composite
def steps(draw: st.DrawFn) -> Json:
    source = draw(st.sampled_from(["system", "user", "agent"]))
    part = st.fixed_dictionaries({"type": st.just("text"), "text": TEXT}) | st.fixed_dictionaries(
        {"type": st.just("image"), "source": st.just({"media_type": "image/png", "path": "images/a.png"})}
    )
    step: Json = {"source": source, "message": draw(TEXT | st.lists(part, max_size=2))} | draw(UNKNOWN)
    if draw(st.booleans()):
        step["is_copied_context"] = draw(st.booleans())
    if source == "agent":
        names = draw(st.lists(TEXT, max_size=2, unique=True))
        calls = [{"tool_call_id": name, "function_name": "sh", "arguments": {"a": name}} for name in names]
        step["tool_calls"] = [call | draw(UNKNOWN) for call in calls]
        results = [{"source_call_id": name, "content": draw(TEXT)} | draw(UNKNOWN) for name in names]
        step["observation"] = {"results": results}
        step["metrics"] = {"prompt_tokens": draw(NUMBER)} | draw(UNKNOWN)
    return step


@st.composite
def documents(draw: st.DrawFn, depth: int = 1) -> Json:
    made = document(*draw(st.lists(steps(), min_size=1, max_size=4)), **draw(UNKNOWN))
    if draw(st.booleans()):
        for step in made["steps"]:
            step["step_id"] += draw(NUMBER)
    for name in ("notes", "session_id"):
        if draw(st.booleans()):
            made[name] = draw(st.none() | TEXT)
    if draw(st.booleans()):
        made["extra"] = draw(UNKNOWN)
    inner = draw(st.lists(documents(depth=depth - 1), max_size=2)) if depth else []
    if inner:
        made["subagent_trajectories"] = [one | {"trajectory_id": str(n)} for n, one in enumerate(inner)]
    return made


@given(documents())
def test_a_document_comes_back_as_it_was_and_every_field_has_an_account(given_document: Json) -> None:
    before = copy.deepcopy(given_document)
    reading = atif.read(given_document)
    [session] = reading.sessions
    assert atif.write(session) == before
    assert given_document == before
    entries = reading.account.entries()
    assert {entry["field"] for entry in entries} >= given_document.keys()
    assert {entry["rows"] for entry in entries} == {1}


def test_an_unknown_field_is_metadata_and_named() -> None:
    reading = atif.read(document({"source": "agent", "mood": "calm", "tool_calls": []}, phase="late"))
    assert reading.sessions[0].metadata == {"phase": "late"}
    assert reading.sessions[0].steps == [{"step_id": 1, "message": "", "source": "agent", "tool_calls": []}]
    account = {entry["field"]: entry["becomes"] for entry in reading.account.entries()}
    assert account["phase"] == account["steps[].mood"] == "metadata"


def test_a_step_that_is_not_valid_is_named() -> None:
    with pytest.raises(RowRefused, match=r"steps\.0\.source"):
        atif.read(document({"source": "robot"}))


def test_copied_context_is_no_step_of_the_agent() -> None:
    copied = {"source": "agent", "message": "before", "is_copied_context": True}
    [session] = atif.read(document(copied, {"source": "agent", "message": "now"})).sessions
    assert session.agent_steps() == [1]


def reference(**fields: str) -> Json:
    return {"source": "agent", "observation": {"results": [{"subagent_trajectory_ref": [fields]}]}}


def test_subagents_are_embedded_or_in_files_of_their_own() -> None:
    inner = document({"source": "user", "message": "inner"}, trajectory_id="t-1")
    outer = document(
        reference(trajectory_id="t-1"), reference(trajectory_path="sub.json"), subagent_trajectories=[inner]
    )
    files = {"sub.json": document({"source": "user", "message": "file"}, continued_trajectory_ref="next.json")}
    reading = atif.read(outer, find=files.get)
    [session] = reading.sessions
    assert [one.steps[0]["message"] for one in session.subagents] == ["inner", "file"]
    assert atif.write(session) == outer
    assert atif.write(session.subagents[1]) == files["sub.json"]
    missing = {
        "field": "subagents[].trajectory_path",
        "rows": 1,
        "becomes": "ignored: its file is not read with this one",
    }
    assert missing in reading.account.entries()


def test_a_reference_of_version_1_5_by_its_session() -> None:
    old = document(reference(session_id="s-2"), schema_version="ATIF-v1.5")
    assert atif.write(atif.read(old).sessions[0]) == old


def test_what_a_trimmed_session_has_no_step_for_is_left_out() -> None:
    [session] = atif.read(document({"source": "user", "a": 1}, {"source": "agent", "b": 2})).sessions
    trimmed = AgentSession(session.layout, session.steps[:1], session.agent, document=session.document)
    assert atif.write(trimmed)["steps"] == [{"step_id": 1, "message": "", "source": "user", "a": 1}]


def test_a_session_of_another_layout_becomes_a_valid_document() -> None:
    session = AgentSession("chat", [{"source": "user", "message": "hello"}], metadata={"split": "train"})
    written = atif.write(session)
    assert written["extra"] == {"split": "train"}
    assert atif.read(written).sessions[0].steps[0]["message"] == "hello"
