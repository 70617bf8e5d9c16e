"""Run the leak lint on a challenger's answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from curation.duels.models import PullRequest
from curation.duels.prompts.doubts import as_record
from curation.runs.kinds import Json
from curation.web.text.storable import storable
from judging.leaks.lint import lint_leaks
from judging.messages import content_of


@dataclass(frozen=True, slots=True)
class Lint:
    """`spans` are `{start, end, token, kind, place, offset, reveals}` in characters of the answer.

    `kind` is a rule of `judging.leaks.lint.RULES`. `reveals` are the record's own words, where the answer's differ.
    """

    score: float
    flagged: bool
    spans: list[Json]


def lint_answer(text: str, history: Sequence[Mapping[str, object]], record: PullRequest, max_leak: float) -> Lint:
    """Compare an answer with its history and hidden record. A score above `max_leak` sets the flag."""
    report = lint_leaks(text, [content_of(message) + _calls(message) for message in history], as_record(record))
    spans: list[Json] = [
        {
            "start": start,
            "end": end,
            "token": storable(leak.token),
            "kind": leak.kind,
            "place": leak.place,
            "offset": leak.offset,
            "reveals": storable(leak.reveals),
        }
        for leak in report.leaked
        for start, end in leak.spans
    ]
    spans.sort(key=lambda span: span["start"])
    return Lint(report.score, report.flagged(max_leak), spans)


def _calls(message: Mapping[str, object]) -> str:
    calls = message.get("tool_calls")
    return f"\n{calls}" if calls else ""
