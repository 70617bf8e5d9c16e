import json

from tests.imports.layouts.golden import documents, packed, said


def test_a_task_has_the_tokens_and_the_model_of_the_files_beside_it() -> None:
    call = {"ts": 1, "type": "say", "say": "api_req_started", "text": '{"tokensIn": 10, "tokensOut": 2, "cost": 0.5}'}
    files = {
        "api_conversation_history.json": [
            {"role": "user", "content": [{"type": "text", "text": "<task>Fix.</task>"}], "ts": 1_700_000_000_000},
            {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
        ],
        "ui_messages.json": [call, call],
        "task_metadata.json": {"model_usage": [{"model_id": "claude-sonnet-4"}], "files_in_context": []},
    }
    folder = packed({f"tasks/17/{name}": json.dumps(value).encode() for name, value in files.items()})
    [document] = documents(folder).values()
    assert document.reading, document.refused
    [session] = document.reading.sessions
    assert said(session) == [("user", "<task>Fix.</task>"), ("agent", "Done.")]
    assert session.steps[0]["timestamp"] == "2023-11-14T22:13:20+00:00"
    assert (session.usage.input_tokens, session.usage.output_tokens, session.usage.cost_usd) == (20, 4, 1.0)
    assert (session.origin.id, session.agent["model_name"]) == ("17", "claude-sonnet-4")
    assert "ignored: no layout reads it" not in folder.became.values()
