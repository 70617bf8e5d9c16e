import json

import pytest

from curation.imports.layouts.agents import mlflow
from curation.imports.layouts.session import SessionOutcome, SessionUsage
from curation.imports.sources.rows import RowRefused
from tests.imports.layouts.golden import becomes, documents, golden, said, sessions


def test_a_trace_is_its_calls_with_feedback_as_rewards() -> None:
    session = sessions(golden("mlflow"))["tr-0001"]
    asked = ("user", "How is the weather in Bergen?")
    assert said(session) == [("system", "Be brief."), asked, ("agent", ""), ("agent", "It rains.")]
    step = session.steps[2]
    assert (step["tool_calls"][0]["function_name"], step["tool_calls"][0]["arguments"]) == (
        "get_weather",
        {"city": "Bergen"},
    )
    assert step["observation"]["results"] == [{"source_call_id": "call_1", "content": "Rain, 7 degrees."}]
    assert [tool["function"]["name"] for tool in session.tools] == ["get_weather"]
    assert (session.agent["name"], session.agent["model_name"]) == ("weather_agent", "gpt-5-mini")
    assert session.verdict.rewards == {"resolved": 1.0, "helpful": 1.0, "clarity": 0.5}
    assert session.verdict.outcome is SessionOutcome.SOLVED
    assert session.usage == SessionUsage(61, 13, seconds=1.25)
    assert (session.metadata["feedback.tone"], session.metadata["tags.level"]) == ("friendly", "easy")
    assert session.metadata["expectation.answer"] == "It rains."
    assert session.learned == {}


def test_a_row_of_an_older_version_is_read_too() -> None:
    session = sessions(golden("mlflow"))["abc"]
    assert said(session) == [("user", "Fix it."), ("agent", "I look.")]
    assert (session.verdict.outcome, session.verdict.exception) == (SessionOutcome.ERROR, "timed out")
    assert (session.metadata["tags.set"], session.usage.seconds) == ("dev", 0.9)


def test_every_field_of_a_trace_has_an_account() -> None:
    account = becomes(documents(golden("mlflow"))["trace.json"])
    assert account["info.assessments"] == "rewards, metadata"
    assert account["info.assessments[].valid"] == "ignored: a later assessment replaces it"
    assert account["info.reward.resolved"] == "reward.resolved"
    assert account["info.request_preview"] == "ignored: the spans have it"
    assert account["mlflow.spanInputs"] == "steps"
    assert account["spans"] == "ignored: they call no model"


def test_a_trace_without_a_call_of_a_model_is_refused() -> None:
    span = {"trace_id": "tr-1", "attributes": {"mlflow.spanType": json.dumps("CHAIN"), "mlflow.spanInputs": "{}"}}
    document = {"info": {"trace_id": "tr-1", "trace_metadata": {}}, "data": {"spans": [span]}}
    assert mlflow.fits(document)
    with pytest.raises(RowRefused, match="no span of the trace calls a model"):
        mlflow.read(document)
