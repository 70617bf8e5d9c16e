"""Look for leaks in a challenger's answer: the lint, and the second reader, as recorded calls of the run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from curation.duels.models import READ, PullRequest
from curation.duels.prompts.doubts import as_record
from curation.llm.client.completion import CompletionRequest, EndpointTarget
from curation.llm.models import Endpoint
from curation.projects.instructions.texts import Instructions
from curation.projects.models import Project
from curation.runs.calls.targets import call_params, delimiter_secret, targets_named
from curation.runs.kinds import ItemFailed, Json, LlmContext
from curation.runs.models import Item
from curation.web.text.storable import storable
from judging.leaks.case import LeakedToken
from judging.leaks.lint import lint_leaks
from judging.leaks.reader import parse_reading, reader_messages
from judging.messages import content_of, message_text

ATTEMPTS = 3
# After so many answers in a row without a reply that can be read, a reader is not asked again.
MOST_UNPARSED = 5
UNPARSED, FAILED, NOT_ASKED = "unparsed", "failed", "not_asked"
# The reader of a run without one.
NONE = "none"


@dataclass(frozen=True, slots=True)
class LintResult:
    """`spans` are `{start, end, token, kind, place, offset, reveals}` in characters of the answer.

    `kind` is a rule of `judging.leaks.lint.RULES`. `reveals` are the record's own words, where the answer's differ.
    """

    score: float
    flagged: bool
    spans: list[Json]


def lint_answer(text: str, history: Sequence[Mapping[str, object]], record: PullRequest, max_leak: float) -> LintResult:
    """Compare an answer with its history and hidden record. A score above `max_leak` sets the flag."""
    report = lint_leaks(text, [content_of(message) + _calls(message) for message in history], as_record(record))
    spans = [_span(leak, at) for leak in report.leaked for at in leak.spans]
    return LintResult(report.score, report.flagged(max_leak), sorted(spans, key=lambda span: span["start"]))


def _span(leak: LeakedToken, at: tuple[int, int]) -> Json:
    return {
        "start": at[0],
        "end": at[1],
        "token": storable(leak.token),
        "kind": leak.kind,
        "place": leak.place,
        "offset": leak.offset,
        "reveals": storable(leak.reveals),
    }


def _calls(message: Mapping[str, object]) -> str:
    calls = message.get("tool_calls")
    return f"\n{calls}" if calls else ""


@dataclass(frozen=True, slots=True)
class LeakReader:
    """The endpoint that reads, and its instructions. `mark` tells one reading from another's."""

    target: EndpointTarget
    instructions: Instructions
    max_tokens: int

    @property
    def mark(self) -> str:
        return f"{self.target.name}:{self.target.model}:{self.instructions.sha256[:16]}"

    def not_asked(self) -> Json:
        """Return the reading of an answer that is not read."""
        return {"model": self.target.name, "state": NOT_ASKED, "findings": [], "dropped": 0, "calls": 0}


async def read_answer(
    context: LlmContext,
    item: Item,
    reader: LeakReader,
    answer: str,
    history: Sequence[Mapping[str, object]],
    record: PullRequest,
) -> Json:
    """Return the reading as it is stored with the answer: `mark`, `model`, `state`, `findings` as spans of the answer,
    `dropped`, `calls`.

    A reply without findings in JSON is asked for again. An answer whose reading failed keeps no `mark`: the next run
    reads it.
    """
    given = as_record(record)
    shown = [message_text(message) for message in history]
    messages = reader_messages(reader.instructions.text, shown, given, answer, secret=delimiter_secret())
    params = call_params(reader.target, {"temperature": 0.0, "max_tokens": reader.max_tokens})
    reading: Json = {"mark": reader.mark, "model": reader.target.name, "state": UNPARSED, "findings": [], "dropped": 0}
    for attempt in range(1, ATTEMPTS + 1):
        request = CompletionRequest(messages, params, attempt=attempt)
        digest = reader.instructions.sha256
        reading["calls"] = attempt
        try:
            answered = await context.ask(item, reader.target, request, instructions_hash=digest, fresh=False)
        except ItemFailed as failure:
            del reading["mark"]
            return {**reading, "state": FAILED, "reason": storable(str(failure))}
        found = parse_reading(answered.completion.text, answer, given)
        if found is not None:
            spans = [_span(leak, leak.spans[0]) for leak in found.findings]
            return {**reading, "state": READ, "findings": spans, "dropped": found.dropped}
    return reading


def settle_reader(project: Project, given: str | None, *, judges: Sequence[str], generators: Sequence[str]) -> str:
    """Return the endpoint that the run or the settings name, else the judge to spare, else `NONE`.

    Raises `Invalid` for a name that is unknown.
    """
    named = given or project.settings.generation.leak_reader
    if named and named != NONE:
        return targets_named(project, [named], "leak_reader")[0].name
    if named == NONE or not project.settings.generation.read_leaks:
        return NONE
    return _spare(project, judges, generators) or NONE


def _spare(project: Project, judges: Sequence[str], generators: Sequence[str]) -> str:
    """Return the first judge whose model is not that of king or challenger; one of another family goes first."""
    found = {one.name: one for one in Endpoint.objects.of(project).filter(name__in=[*judges, *generators])}
    writers = [found[name] for name in generators if name in found]
    models = {(one.model, one.api_base) for one in writers}
    families = {one.family for one in writers if one.family}
    free = [one for name in judges if (one := found.get(name)) and (one.model, one.api_base) not in models]
    free.sort(key=lambda one: one.family in families)
    return free[0].name if free else ""


def reader_note(reader: str) -> str:
    """Say for the launch who will read."""
    if reader == NONE:
        return "Leaks: lint only. No model reads the answers for their meaning: none is named, no judge is to spare."
    return f"Leaks: {reader} reads each challenger answer that the lint passes."
