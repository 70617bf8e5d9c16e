"""Have a challenger's answer read by the project's second reader, as recorded calls of the run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from curation.duels.models import READ, PullRequest
from curation.duels.prompts.doubts import as_record
from curation.llm.client.completion import CompletionRequest, EndpointTarget
from curation.projects.instructions.texts import Instructions
from curation.runs.calls.targets import call_params, delimiter_secret
from curation.runs.kinds import ItemFailed, Json, LlmContext
from curation.runs.models import Item
from curation.web.text.storable import storable
from judging.leaks.reader import parse_reading, reader_messages
from judging.messages import message_text

ATTEMPTS = 3
# After so many answers in a row without a reply that can be read, a reader is not asked again.
MOST_UNPARSED = 5
UNPARSED, FAILED, NOT_ASKED = "unparsed", "failed", "not_asked"


@dataclass(slots=True)
class Patience:
    """Counts the answers in a row whose reading could not be parsed."""

    unparsed: int = 0

    @property
    def is_lost(self) -> bool:
        return self.unparsed >= MOST_UNPARSED


@dataclass(frozen=True, slots=True)
class LeakReader:
    """The endpoint that reads, its instructions, and the patience of all its readings in this process. `mark` tells one
    reading from another's."""

    target: EndpointTarget
    instructions: Instructions
    max_tokens: int
    patience: Patience

    @property
    def mark(self) -> str:
        return f"{self.target.name}:{self.target.model}:{self.instructions.sha256[:16]}"


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
    if reader.patience.is_lost:
        return {"model": reader.target.name, "state": NOT_ASKED, "findings": [], "dropped": 0, "calls": 0}
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
            spans = [
                {
                    "start": leak.spans[0][0],
                    "end": leak.spans[0][1],
                    "token": storable(leak.token),
                    "kind": leak.kind,
                    "place": leak.place,
                    "offset": leak.offset,
                    "reveals": storable(leak.reveals),
                }
                for leak in found.findings
            ]
            reader.patience.unparsed = 0
            return {**reading, "state": READ, "findings": spans, "dropped": found.dropped}
    reader.patience.unparsed += 1
    return reading
