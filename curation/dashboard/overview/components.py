"""The example transcripts of the page of components."""

from curation.trajectories.session.steps import TerminalTranscript
from curation.web.text.chat import Chat

PROMPT = "agent@host:~$ "
MESSAGES = (
    ("user", "Header values with a trailing comma are dropped when the response is parsed."),
    ("assistant", "THOUGHT: the parser splits on commas.\n\n```bash\nsed -n '40,80p' src/headers.py | grep split\n```"),
    ("user", "E   AssertionError: assert [] == ['a']\n\x1b]0;title\x071 failed, 2 passed in 0.31s"),
)
TURNS = (
    {"kind": "orientation", "text": f"Work is announced by: todo\n{PROMPT}", "prompt": PROMPT},
    {"kind": "action", "text": "cat queue.txt"},
    {
        "kind": "output",
        "text": f"cat: queue.txt: not found\n{PROMPT}",
        "prompt": PROMPT,
        "exit_code": 1,
        "seconds": 0.4,
    },
    {"kind": "action", "text": "cat app.log"},
    {"kind": "output", "text": f"07:00 started\n{PROMPT}", "prompt": PROMPT, "exit_code": 0, "truncated": True},
)


def component_examples() -> dict[str, object]:
    history = Chat([{"role": role, "content": text} for role, text in MESSAGES])
    return {"turns": history.complete(), "session": TerminalTranscript(TURNS, pk=0).opening()}
