"""A trajectory as rows show it: what the terminal showed is the user, what was typed into it the assistant.

Rows are made from the recorded turns alone. The raw exchange, which holds the scaffold and the model's prose, is not
read by exports at all, so none of its words can leave.
"""

from typing import NamedTuple

from curation.exports.rows.messages import BadHistory, Message
from curation.exports.rows.skip_reasons import Reason, answer_reason, pair_reason
from curation.trajectories.models import Strategy

_WHOLE = Strategy.WHOLE_TRAJECTORY.value


class Rival(NamedTuple):
    """The rejected side of a stored pair, or why the pair may not leave. `at`: see `trajectories.models.Pair`."""

    pair_id: int
    strategy: str
    at: int
    messages: list[Message]
    reason: Reason | None


class Session(NamedTuple):
    """A kept trajectory as every format sees it; `rivals` in the order of their pairs."""

    messages: list[Message]
    rivals: list[Rival]


class Preference(NamedTuple):
    """A prompt with two ways to go on, the first preferred."""

    prompt: list[Message]
    chosen: list[Message]
    rejected: list[Message]


def messages_of(turns: object) -> list[Message]:
    """Turns in deploy format as messages; raises `BadHistory`.

    They must be an orientation and then commands and outputs in turn; keys other than kind and text are dropped.
    """
    if not isinstance(turns, list) or len(turns) < 2:
        raise BadHistory(Reason.BAD_TURNS)
    messages: list[Message] = []
    for number, turn in enumerate(turns):
        expected = "action" if number % 2 else "output" if number else "orientation"
        if not isinstance(turn, dict) or turn.get("kind") != expected:
            raise BadHistory(Reason.BAD_TURNS)
        text = turn.get("text")
        if not isinstance(text, str):
            raise BadHistory(Reason.BAD_TURNS)
        if expected == "action" and (refused := answer_reason(text)):
            raise BadHistory(refused)
        messages.append({"role": "assistant" if expected == "action" else "user", "content": text})
    if not messages[0]["content"].strip():
        raise BadHistory(Reason.EMPTY_PROMPT)
    return messages


def ends_in(messages: list[Message], terminal: str) -> bool:
    """Whether the last message is the command that ended the episode: `exit`, or `panic` with or without a reason."""
    last = messages[-1]
    return last["role"] == "assistant" and bool(terminal) and last["content"].split(maxsplit=1)[0] == terminal


def preference(chosen: list[Message], rival: Rival) -> Preference | Reason:
    """The pair as messages, or why it makes no preference. The two must first differ in a command, at `at` or later.

    First divergence: what both sides share is the prompt, and one command stands on each side. Whole trajectory: the
    orientation is the prompt, and all that follows, up to the last command, stands on each side.
    """
    if rival.reason is not None:
        return rival.reason
    rejected, at, whole = rival.messages, rival.at, rival.strategy == _WHOLE
    shorter = min(len(chosen), len(rejected))
    differ = next((number for number in range(shorter) if chosen[number] != rejected[number]), shorter)
    if differ == shorter or differ % 2 == 0 or differ < at or at % 2 == 0 or (differ > at and not whole):
        return Reason.NO_DIVERGENCE
    refused = pair_reason(chosen[differ]["content"], rejected[differ]["content"])
    if refused is not None:
        return refused
    if whole:
        # An output that nobody answered teaches nothing, and a side must end with the assistant.
        end = len(rejected) - len(rejected) % 2
        return Preference(chosen[:at], chosen[at:], rejected[at:end])
    return Preference(chosen[:at], chosen[at : at + 1], rejected[at : at + 1])
