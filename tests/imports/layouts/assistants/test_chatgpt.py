from typing import Any

import pytest

from curation.imports.layouts.assistants import chatgpt
from curation.imports.layouts.images import KEPT, read_images
from curation.imports.layouts.session import AgentSession
from curation.imports.sources.rows import RowRefused
from tests.imports.layouts.golden import becomes, documents, golden, said


def conversation() -> AgentSession:
    document = documents(golden("chatgpt"))["conversations.json:1"]
    assert document.reading, document.refused
    [session] = document.reading.sessions
    return session


def test_the_shown_branch_is_the_session() -> None:
    session = conversation()
    roles = [step["source"] for step in session.steps]
    assert roles == ["system", "user", "agent", "agent", "user", "agent", "agent"]
    assert said(session)[0] == ("system", "I sail.\nBe brief.")
    assert said(session)[3] == ("agent", "One pixel.")
    assert said(session)[-1] == ("agent", "A point.")
    python, search = session.steps[2], session.steps[5]
    assert python["reasoning_content"] == "Measure\nOpen the file."
    assert (python["tool_calls"][0]["function_name"], python["tool_calls"][0]["arguments"]) == (
        "python",
        {"code": "print(size)"},
    )
    assert python["observation"]["results"][0]["content"] == "(1, 1)"
    assert (search["tool_calls"][0]["function_name"], search["tool_calls"][0]["arguments"]) == (
        "web.run",
        {"search_query": [{"q": "pixel"}]},
    )
    assert search["observation"]["results"][0]["content"] == "A pixel is a point."
    assert (session.agent["model_name"], session.origin.id) == ("gpt-5", "c-1")
    assert (session.metadata["title"], session.learned) == ("One pixel", {})


def test_an_image_is_the_file_of_the_export() -> None:
    document = documents(golden("chatgpt"))["conversations.json:1"]
    assert document.reading
    session = read_images(conversation(), document.beside, document.reading.account)
    image, text = session.steps[1]["message"]
    assert image["source"]["path"].startswith("data:image/png;base64,")
    assert text == {"type": "text", "text": "How large is it?"}
    assert becomes(document)["(images)"] == KEPT


def test_what_is_not_read_is_accounted_for() -> None:
    folder = golden("chatgpt")
    found = documents(folder)
    account = becomes(found["conversations.json:1"])
    assert account["(other branches)"] == "ignored: it is on another branch than the one shown last"
    assert account["mapping[].message.content (reasoning_recap)"] == "ignored: the model does not see it"
    assert account["mapping[].message.weight"] == account["mapping[].message.status"] == "ignored"
    assert account["title"] == "metadata"
    assert "content 'hologram', which is not known" in found["conversations.json:2"].refused
    assert folder.became["user.json"].startswith("ignored: the export's conversations")
    assert folder.became["message_feedback.json"].startswith("ignored")


def tree(current: str, **parents: str | None) -> dict[str, Any]:
    content = {"content_type": "text", "parts": ["Hi."]}
    message = {"author": {"role": "user"}, "content": content}
    nodes = {
        name: {"message": message, "parent": parent, "children": [one for one in parents if parents[one] == name]}
        for name, parent in parents.items()
    }
    return {"mapping": nodes, "current_node": current}


@pytest.mark.parametrize(
    ("document", "reason"),
    [(tree("a", a="b", b="a"), "above itself"), (tree("?", a=None, b="a", c="a"), "several branches")],
)
def test_a_tree_that_tells_no_branch_is_refused(document: dict[str, Any], reason: str) -> None:
    assert chatgpt.fits(document)
    with pytest.raises(RowRefused, match=reason):
        chatgpt.read(document)


def test_a_tree_without_branches_needs_no_current_node() -> None:
    [session] = chatgpt.read(tree("", a=None, b="a")).sessions
    assert said(session) == [("user", "Hi."), ("user", "Hi.")]
