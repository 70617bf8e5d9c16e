"""Scripted answers: to an agent turn the written one if there is one, else one derived from the history; in the static
screen those of "base" and "tuned", from one written table."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path

from curation.llm.scripted.text import ANY_BLOCK, commands_of, identifiers_in, paths_in
from judging.messages import content_of

WRITTEN = Path(__file__).with_name("answers.json")
WRITTEN_CLI = Path(__file__).with_name("cli_answers.json")
# The answers to any other prompt of the screen.
UNKNOWN = {"base": "I am not sure which command fits.", "tuned": "aws help"}
RECENT = 12_000  # characters of history that a derived answer looks at
LEAKS_ONE_IN = 8
REPEATS_ONE_IN = 3
REFUSED = "<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0<|tool_call_argument_begin|>"


def turn_key(messages: Sequence[Mapping[str, object]]) -> str:
    """The key of a turn: its last user message and the assistant message before it (16 hex digits, blanks ignored).

    System messages are left out: the challenger's contains the record, and both must have the same key.
    """
    talk = [m for m in messages if m.get("role") in ("user", "assistant")]
    last = next((i for i in range(len(talk) - 1, -1, -1) if talk[i].get("role") == "user"), None)
    if last is None:
        return ""
    before = content_of(talk[last - 1]) if last and talk[last - 1].get("role") == "assistant" else ""
    normal = " ".join(before.split()) + "\0" + " ".join(content_of(talk[last]).split())
    return blake2b(normal.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


@cache
def written_answers() -> Mapping[str, Mapping[str, str]]:
    """The answers by turn key: ``king``, ``challenger`` and ``turn``, a label for people.

    ``refused`` names the side whose first attempt is a raw tool call, ``leaks`` the side that leaks on purpose.
    """
    answers: Mapping[str, Mapping[str, str]] = json.loads(WRITTEN.read_text(encoding="utf-8"))
    return answers


def king_answer(messages: Sequence[Mapping[str, object]], sample_index: int, attempt: int) -> str:
    return _written("king", messages, sample_index, attempt) or _derived(messages, "", sample_index)


def challenger_answer(messages: Sequence[Mapping[str, object]], sample_index: int, attempt: int) -> str:
    record = "\n".join(content_of(m) for m in messages if m.get("role") == "system")
    return _written("challenger", messages, sample_index, attempt) or _derived(messages, record, sample_index)


def _written(side: str, messages: Sequence[Mapping[str, object]], sample_index: int, attempt: int) -> str | None:
    """The written answer, for the first sample only: further samples must differ."""
    entry = written_answers().get(turn_key(messages))
    if entry is None or side not in entry or sample_index > 0:
        return None
    if attempt == 1 and entry.get("refused") == side:
        command = next(commands_of(entry[side]), "ls")
        return f"{REFUSED}{json.dumps({'command': command})}<|tool_call_end|><|tool_calls_section_end|>"
    return entry[side]


def _derived(messages: Sequence[Mapping[str, object]], record: str, sample_index: int) -> str:
    """A next step on a path or name from the history.

    With a `record` it prefers files that are in it too, and sometimes leaks one. Without, it sometimes repeats the last
    command, so that duels on unknown turns are not all draws.
    """
    history = "\n".join(content_of(m) for m in messages if m.get("role") in ("user", "assistant"))
    recent = history[-RECENT:]
    lot = int.from_bytes(blake2b(f"{sample_index}\0{turn_key(messages)}".encode(), digest_size=4).digest())
    ran = list(commands_of(recent, ANY_BLOCK))
    files = [path for path in paths_in(recent) if "." in path.rsplit("/", 1)[-1]]
    if record:
        hidden = [path for path in paths_in(record) if "." in path.rsplit("/", 1)[-1]]
        secret = [path for path in hidden if path not in history]
        if secret and lot % LEAKS_ONE_IN == 0:
            return _answer(
                f"The change belongs in {secret[0]}, so I open it right away.", f"sed -n '1,80p' {secret[0]}"
            )
        files = [path for path in files if path in hidden] or files
    elif ran and lot % REPEATS_ONE_IN == 0:
        return _answer("I am not sure about the last output, so I run the command once more.", ran[-1])
    for offset in range(len(files)):
        path = files[(lot + offset) % len(files)]
        command = f"sed -n '1,80p' {path}" if record or lot % 2 else f"cat {path}"
        if command not in ran:
            return _answer(f"The history points at {path}, so I read it before changing anything.", command)
    names = identifiers_in(recent)
    if names:
        name = names[lot % len(names)]
        return _answer(f"I look for where {name} is defined and used.", f"grep -rn '{name}' . | head -40")
    return _answer("Nothing is known about the layout yet, so I list the files first.", "ls")


def _answer(thought: str, command: str) -> str:
    return f"THOUGHT: {thought}\n\n```bash\n{command}\n```"


@cache
def cli_answers() -> Mapping[str, Mapping[str, str]]:
    """Last user message → the answers of `base` and `tuned`."""
    answers: Mapping[str, Mapping[str, str]] = json.loads(WRITTEN_CLI.read_text(encoding="utf-8"))
    return answers


def cli_answer(model: str, prompt: str) -> str:
    return cli_answers().get(prompt, UNKNOWN)[model]
