"""Scripted models: deterministic, offline stand-ins for language models, named ``scripted/<name>``.

They exist so that the demo and the tests run the real pipeline without a network. They are no language models and say
so: answers come from a written table or from plain rules, verdicts from simple heuristics on what the judge is shown.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from curation.llm.scripted.answers import challenger_answer, king_answer
from curation.llm.scripted.cli import cli_answer
from curation.llm.scripted.judges import NothingToCompare, brisk, careful, first, rambling
from curation.llm.scripted.operators import looper, mixed, mumbler, panicker, quitter, sleeper, solver
from curation.llm.scripted.teacher import teacher_reply
from judging.messages import content_of

RAW_TOOL_CALL = '<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0{"command": "ls"}<|tool_call_end|>'
CHARACTERS_PER_TOKEN = 4  # the usual rule of thumb for English and code; an estimate, nothing is tokenised here


class UnknownScriptedModel(ValueError):
    """The name after ``scripted/`` is none of `SCRIPTED_MODELS`."""


@dataclass(frozen=True)
class Utterance:
    """What a scripted model says: its text and why it stopped, ``stop`` or ``length`` (cut off)."""

    text: str
    finish_reason: str = "stop"


@dataclass(frozen=True)
class ScriptedReply:
    """One reply. Token counts are estimates: characters ÷ 4, rounded up."""

    text: str
    finish_reason: str
    tokens_in: int
    tokens_out: int


Script = Callable[[Sequence[Mapping[str, object]], int, int], Utterance]


def _king(messages: Sequence[Mapping[str, object]], sample_index: int, attempt: int) -> Utterance:
    return Utterance(king_answer(messages, sample_index=sample_index, attempt=attempt))


def _challenger(messages: Sequence[Mapping[str, object]], sample_index: int, attempt: int) -> Utterance:
    return Utterance(challenger_answer(messages, sample_index=sample_index, attempt=attempt))


def _last_user(messages: Sequence[Mapping[str, object]]) -> str:
    return next((content_of(m) for m in reversed(messages) if m.get("role") == "user"), "")


def _judge(judge: Callable[[str, int], tuple[str, str]]) -> Script:
    def script(messages: Sequence[Mapping[str, object]], sample_index: int, attempt: int) -> Utterance:
        try:
            text, finish_reason = judge(_last_user(messages), attempt)
        except NothingToCompare as reason:  # said as a model would say it: the caller finds no verdict in it
            return Utterance(str(reason))
        return Utterance(text, finish_reason)

    return script


def _operator(operator: Callable[[Sequence[Mapping[str, object]], int], str]) -> Script:
    def script(messages: Sequence[Mapping[str, object]], sample_index: int, attempt: int) -> Utterance:
        return Utterance(operator(messages, sample_index))

    return script


def _teacher(messages: Sequence[Mapping[str, object]], sample_index: int, attempt: int) -> Utterance:
    return Utterance(teacher_reply(messages, sample_index=sample_index, attempt=attempt))


def _broken(messages: Sequence[Mapping[str, object]], sample_index: int, attempt: int) -> Utterance:
    return Utterance(RAW_TOOL_CALL)


def _echo(messages: Sequence[Mapping[str, object]], sample_index: int, attempt: int) -> Utterance:
    return Utterance(_last_user(messages))


def _cli(who: str) -> Script:
    def script(messages: Sequence[Mapping[str, object]], sample_index: int, attempt: int) -> Utterance:
        return Utterance(cli_answer(who, messages))

    return script


_MODELS: Mapping[str, tuple[Script, str]] = {
    "king": (_king, "Plays the answers written for the demo's turns, otherwise looks at a file the history names."),
    "challenger": (
        _challenger,
        "Plays the demo's written answers (a few leak on purpose), otherwise uses what history and record share.",
    ),
    "judge-careful": (
        _judge(careful),
        "Compares two answers by counted facts and calls a draw unless one clearly leads.",
    ),
    "judge-brisk": (_judge(brisk), "Compares two answers by counted facts and decides on small differences."),
    "judge-first": (
        _judge(first),
        "Leans to the answer it sees first on close calls, and runs out of reply when two answers are long.",
    ),
    "judge-rambling": (
        _judge(rambling),
        "Judges like judge-careful but in about a third of the cases replies prose or cut JSON.",
    ),
    "teacher": (
        _teacher,
        "Writes a scenario for the combination asked for out of written parts; one in three is incomplete at first.",
    ),
    "operator-solver": (
        _operator(solver),
        "Plays the steps written for the shipped scenarios, told apart by their announcement; leaves any other.",
    ),
    "operator-mixed": (
        _operator(mixed),
        "By sample: plays the written steps, leaves half-way, or goes in circles; with thinking and prose beside.",
    ),
    "operator-quitter": (_operator(quitter), "Leaves by exit at once, without looking."),
    "operator-panicker": (_operator(panicker), "Leaves by panic at once, without looking."),
    "operator-looper": (_operator(looper), "Lists the home directory for ever and never leaves."),
    "operator-sleeper": (_operator(sleeper), "Sleeps for an hour whenever it has the turn."),
    "operator-mumbler": (_operator(mumbler), "Only thinks aloud and never gives a command."),
    "base-cli": (
        _cli("base"),
        "Reads the weaker answers of a written table of AWS commands: prose, fences and guessed flags among them.",
    ),
    "tuned-cli": (_cli("tuned"), "Reads the better answers of the same table; a stranger's prompt gets aws help."),
    "broken": (_broken, "Always begins with a raw tool-call token, so every answer is refused by format."),
    "echo": (_echo, "Gives the last user message back, word for word."),
}

SCRIPTED_MODELS: Mapping[str, str] = {name: sentence for name, (_, sentence) in _MODELS.items()}


def _tokens(characters: int) -> int:
    return -(-characters // CHARACTERS_PER_TOKEN)


def reply(
    name: str, messages: Sequence[Mapping[str, object]], *, sample_index: int = 0, attempt: int = 1
) -> ScriptedReply:
    """Answer `messages` as the scripted model `name` (without ``scripted/``).

    The reply depends on the arguments alone. `sample_index` counts from 0, `attempt` from 1.

    Raises:
        UnknownScriptedModel: `name` is not in `SCRIPTED_MODELS`.
    """
    if name not in _MODELS:
        raise UnknownScriptedModel(f"no scripted model {name!r}; there are {', '.join(sorted(_MODELS))}")
    script, _ = _MODELS[name]
    said = script(messages, sample_index, attempt)
    tokens_in = _tokens(sum(len(content_of(message)) for message in messages))
    return ScriptedReply(said.text, said.finish_reason, tokens_in, _tokens(len(said.text)))
