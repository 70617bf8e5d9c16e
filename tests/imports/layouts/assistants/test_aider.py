import re

from curation.imports.layouts.session import AgentSession
from tests.imports.layouts.golden import documents, packed, said

CHAT = b"""
# aider chat started at 2025-12-24 16:45:52

> Aider v0.86.1
> Main model: gpt-4o with diff edit format

#### Fix the bug
#### in a.py

I fix it.

> Tokens: 2.3k sent, 120 received. Cost: $0.01 message, $0.01 session.
> Applied edit to a.py

# aider chat started at 2025-12-25 10:00:00

> Aider v0.86.1
"""
CALLS = b"""TO LLM 2025-01-01T00:00:00
-------
USER Fix.
LLM RESPONSE 2025-01-01T00:00:05
ASSISTANT Done.
TO LLM 2025-01-01T00:01:00
-------
SYSTEM Act as
SYSTEM an expert.
-------
USER Fix.
-------
ASSISTANT Done.
-------
USER More.
LLM RESPONSE 2025-01-01T00:01:05
ASSISTANT Ok
ASSISTANT 
ASSISTANT bye.
"""


def read(content: bytes, name: str) -> AgentSession:
    [document] = documents(packed({name: content, "README.md": b"# Read me"})).values()
    assert document.reading, document.refused
    [session] = document.reading.sessions
    return session


def test_a_chat_is_a_session_with_what_the_program_says_of_its_tokens() -> None:
    session = read(CHAT, ".aider.chat.history.md")
    assert said(session) == [("user", "Fix the bug\nin a.py"), ("agent", "I fix it.")]
    assert session.agent == {"name": "aider", "version": "0.86.1", "model_name": "gpt-4o"}
    assert session.steps[1]["metrics"] == {"prompt_tokens": 2300, "completion_tokens": 120, "cost_usd": 0.01}
    assert session.steps[0]["timestamp"] == "2025-12-24 16:45:52"


def test_what_the_model_wrote_after_a_mark_of_the_program_is_the_answer() -> None:
    edit = b"<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE"
    assert said(read(CHAT.replace(b"I fix it.", edit), ".aider.chat.history.md"))[1] == ("agent", edit.decode())
    real = re.sub(rb"(?m)^(> .*)$", rb"\1  ", CHAT).replace(b"I fix it.", b"> As you said:\n\nI fix it.")
    assert said(read(real, ".aider.chat.history.md"))[1] == ("agent", "> As you said:\n\nI fix it.")


def test_the_last_call_of_a_log_of_calls_has_the_whole_conversation() -> None:
    session = read(CALLS, "aider-llm.log")
    assert said(session) == [
        ("system", "Act as\nan expert."),
        ("user", "Fix."),
        ("agent", "Done."),
        ("user", "More."),
        ("agent", "Ok\n\nbye."),
    ]
