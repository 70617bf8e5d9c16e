import json

import pytest

from curation.imports.layouts.session import SessionUsage
from tests.imports.layouts.golden import GOLDEN, becomes, documents, golden, packed, said, sessions
from tests.imports.layouts.test_folder import lines


def test_the_branch_of_the_last_entry_is_the_session() -> None:
    session = sessions(golden("pi"))["s1"]
    assert said(session) == [("user", "Fix it."), ("agent", ""), ("user", "$ pwd\n/w"), ("agent", "Fixed.")]
    step = session.steps[1]
    assert (step["reasoning_content"], step["tool_calls"][0]["arguments"]) == ("Look.", {"command": "ls"})
    assert step["observation"]["results"][0] == {"source_call_id": "c1", "content": "a.py"}
    assert (session.agent["name"], session.agent["model_name"]) == ("pi", "claude-x")
    assert session.usage == SessionUsage(30, 4, 15, cost_usd=0.02, seconds=5.0)
    assert (session.metadata["cwd"], session.learned) == ("/w", {})


def test_what_is_not_read_is_accounted_for() -> None:
    account = becomes(documents(golden("pi"))["session.jsonl"])
    assert account["(other branches)"] == "ignored: it is on another branch than the last entry"
    assert account["(entries: model_change)"] == "ignored: the messages have it"
    assert account["messages[].stopReason"] == "ignored"


def test_an_entry_after_one_that_is_not_known_follows_the_one_before_it() -> None:
    """Some programs name the call in place of its entry."""
    call = {"type": "toolCall", "id": "c", "name": "ls", "arguments": {}}
    texts = [("user", "Fix it."), ("assistant", [call]), ("toolResult", "a.py"), ("assistant", "Fixed.")]
    messages = [{"role": role, "content": content, "toolCallId": "c"} for role, content in texts]
    parents = ("s1", "m0", "c", "m2")
    entries = [
        {"type": "message", "id": f"m{at}", "parentId": parent, "message": message}
        for at, (parent, message) in enumerate(zip(parents, messages, strict=True))
    ]
    session = sessions(packed({"s.jsonl": lines({"type": "session", "id": "s1", "cwd": "/w"}, *entries)}))["s1"]
    assert said(session) == [("user", "Fix it."), ("agent", ""), ("agent", "Fixed.")]


@pytest.mark.parametrize(
    ("later", "is_read"), [({"type": "new_kind"}, True), ({"type": "new_kind", "text": "x"}, False)]
)
def test_an_entry_of_an_unknown_type_is_counted_unless_it_says_something(later: dict[str, str], is_read: bool) -> None:
    whole = (GOLDEN / "pi" / "session.jsonl").read_bytes()
    last = json.loads(whole.splitlines()[-1])["id"]
    log = whole.rstrip() + b"\n" + lines({**later, "id": "z", "parentId": last})
    document = documents(packed({"session.jsonl": log}))["session.jsonl"]
    assert ("'new_kind', which is not known" in document.refused) != is_read
    assert not is_read or becomes(document)["(entries: new_kind)"] == "ignored"
