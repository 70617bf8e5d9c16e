"""Scripted models: deterministic, offline stand-ins for language models, named ``scripted/<name>``.

With them the demo and the tests run the real pipeline without a network. Answers come from a written table or from
plain rules, verdicts from simple heuristics on the judge's prompt.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from curation.llm.scripted.answers import challenger_answer, cli_answer, king_answer
from curation.llm.scripted.judges import NothingToCompare, brisk, careful, first, is_reading, rambling, read_leaks
from curation.llm.scripted.operators import looper, mixed, mumbler, panicker, quitter, sleeper, solver
from curation.llm.scripted.teacher import teacher_reply
from judging.messages import content_of, estimated_tokens

RAW_TOOL_CALL = '<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0{"command": "ls"}<|tool_call_end|>'


class UnknownScriptedModel(ValueError):
    """The name after ``scripted/`` is not in `SCRIPTED_MODELS`."""


@dataclass(frozen=True)
class ScriptedReply:
    """One reply. Token counts are estimates: characters ÷ 4, rounded up."""

    text: str
    finish_reason: str
    tokens_in: int
    tokens_out: int


Messages = Sequence[Mapping[str, object]]
# Of messages, sample index and attempt: the text, or the text and why it stopped, `stop` or `length` (cut off).
Script = Callable[[Messages, int, int], str | tuple[str, str]]


def _last_user(messages: Messages) -> str:
    return next((content_of(m) for m in reversed(messages) if m.get("role") == "user"), "")


def _judge(judge: Callable[[str, int], tuple[str, str]]) -> Script:
    def script(messages: Messages, sample_index: int, attempt: int) -> str | tuple[str, str]:
        prompt = _last_user(messages)
        if is_reading(prompt):
            return read_leaks(prompt)
        try:
            return judge(prompt, attempt)
        except NothingToCompare as reason:  # a text without a verdict, as a model could write
            return str(reason)

    return script


def _operator(operator: Callable[[Messages, int], str]) -> Script:
    return lambda messages, sample_index, attempt: operator(messages, sample_index)


def _by_last_user(answer: Callable[[str], str]) -> Script:
    return lambda messages, sample_index, attempt: answer(_last_user(messages))


_MODELS: Mapping[str, tuple[Script, str]] = {
    "king": (
        king_answer,
        "Gives the written answers to the demo's turns; otherwise looks at a file that the history names.",
    ),
    "challenger": (
        challenger_answer,
        "Gives the demo's written answers (a few leak on purpose); otherwise uses what history and record share.",
    ),
    "judge-careful": (
        _judge(careful),
        "Compares two answers by counted facts and calls a draw unless one clearly leads.",
    ),
    "judge-brisk": (_judge(brisk), "Compares two answers by counted facts and decides on small differences."),
    "judge-first": (
        _judge(first),
        "Prefers the first answer in close cases; its reply is cut off when both answers are long.",
    ),
    "judge-rambling": (
        _judge(rambling),
        "Judges like judge-careful, but about a third of its replies are prose or cut JSON.",
    ),
    "leak-reader": (
        _by_last_user(read_leaks),
        "Finds sentences of the hidden record that an answer repeats in other words.",
    ),
    "teacher": (
        teacher_reply,
        "Assembles a scenario for the requested combination from written parts; one in three is incomplete at first.",
    ),
    "operator-solver": (
        _operator(solver),
        "Plays the written steps of the shipped scenarios, which it knows by their announcement; exits any other.",
    ),
    "operator-mixed": (
        _operator(mixed),
        "By sample: plays the written steps, exits half-way, or repeats itself; adds thinking and prose.",
    ),
    "operator-quitter": (_operator(quitter), "Exits at once."),
    "operator-panicker": (_operator(panicker), "Panics at once."),
    "operator-looper": (_operator(looper), "Lists the home directory again and again and never exits."),
    "operator-sleeper": (_operator(sleeper), "Sleeps for an hour in every turn."),
    "operator-mumbler": (_operator(mumbler), "Only thinks aloud, without a command."),
    "base-cli": (
        _by_last_user(partial(cli_answer, "base")),
        "Gives the weaker answers of a written table of AWS commands, with prose, fences and guessed flags.",
    ),
    "tuned-cli": (
        _by_last_user(partial(cli_answer, "tuned")),
        "Gives the better answers of the same table; aws help to an unknown prompt.",
    ),
    "broken": (
        _by_last_user(lambda prompt: RAW_TOOL_CALL),
        "Begins every answer with a raw tool-call token, so each is refused for its format.",
    ),
    "echo": (_by_last_user(str), "Repeats the last user message."),
}

SCRIPTED_MODELS: Mapping[str, str] = {name: sentence for name, (_, sentence) in _MODELS.items()}


def reply(name: str, messages: Messages, *, sample_index: int = 0, attempt: int = 1) -> ScriptedReply:
    """Answer `messages` as the scripted model `name` (without ``scripted/``).

    The reply depends on the arguments alone. `sample_index` counts from 0, `attempt` from 1.

    Raises:
        UnknownScriptedModel: `name` is not in `SCRIPTED_MODELS`.
    """
    if name not in _MODELS:
        raise UnknownScriptedModel(f"no scripted model {name!r}; there are {', '.join(sorted(_MODELS))}")
    script, _ = _MODELS[name]
    said = script(messages, sample_index, attempt)
    text, finish_reason = (said, "stop") if isinstance(said, str) else said
    tokens_in = estimated_tokens(sum(len(content_of(message)) for message in messages))
    return ScriptedReply(text, finish_reason, tokens_in, estimated_tokens(len(text)))
