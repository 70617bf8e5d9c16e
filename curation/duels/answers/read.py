"""Have a challenger's answer read by the project's second reader, as recorded calls of the run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice

from django.db.models import Count, Q, Sum

from curation.duels.models import Answer, PullRequest, Side
from curation.duels.prompts.doubts import as_record
from curation.llm.client.completion import Request, Target
from curation.projects.instructions.texts import Instructions
from curation.runs.calls.delimiters import delimiter_secret
from curation.runs.calls.targets import call_params, run_instructions
from curation.runs.kinds import Json, LlmContext
from curation.runs.models import Call, Item, ItemState, Run
from curation.web.text.figures import counted, exact_money, money
from curation.web.text.storable import storable
from judging.leaks.reader import READ, parse_reading, reader_messages
from judging.messages import message_text

ATTEMPTS = 3
UNPARSED = "unparsed"
CHUNK = 1000


@dataclass(frozen=True, slots=True)
class Reader:
    """The endpoint that reads, and its instructions. `mark` tells one reading from another's."""

    target: Target
    instructions: Instructions
    max_tokens: int

    @property
    def mark(self) -> str:
        return f"{self.target.name}:{self.target.model}:{self.instructions.sha256[:16]}"


async def read_answer(
    context: LlmContext,
    item: Item,
    reader: Reader,
    answer: str,
    history: Sequence[Mapping[str, object]],
    record: PullRequest,
) -> Json:
    """Return the reading as it is stored with the answer: `mark`, `model`, `state` (read or unparsed), `findings` as
    spans of the answer, `dropped`, `calls`. A reply without findings in JSON is asked for again."""
    given = as_record(record)
    shown = [message_text(message) for message in history]
    messages = reader_messages(reader.instructions.text, shown, given, answer, secret=delimiter_secret())
    params = call_params(reader.target, {"temperature": 0.0, "max_tokens": reader.max_tokens})
    reading: Json = {"mark": reader.mark, "model": reader.target.name, "state": UNPARSED, "findings": [], "dropped": 0}
    for attempt in range(1, ATTEMPTS + 1):
        request = Request(messages, params, attempt=attempt)
        digest = reader.instructions.sha256
        answered = await context.ask(item, reader.target, request, instructions_hash=digest, fresh=False)
        reading["calls"] = attempt
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
            return {**reading, "state": "read", "findings": spans, "dropped": found.dropped}
    return reading


def leak_figures(run: Run) -> Json:
    """Return what lint and second reader found in the run's challenger answers, and what the reader cost.

    `answers`, `lint`, `read`, `reader` (with findings) and `unparsed` count answers, `dropped` counts findings without
    their quotes. `cost` is in dollars, None if the cost of a call is unknown; `reader_calls` counts recorded calls.
    """
    figures: Json = {"answers": 0, "lint": 0, "read": 0, "reader": 0, UNPARSED: 0, "dropped": 0}
    done = Item.objects.filter(run=run, stage=Side.CHALLENGER.value, state=ItemState.DONE).order_by("id")
    results = done.values_list("result", flat=True).iterator(CHUNK)
    while chunk := list(islice(results, CHUNK)):
        ids = [result["answer"] for result in chunk if "answer" in result]
        rows = Answer.objects.filter(pk__in=ids).values_list("leak_flag", "reader_flag", "reading")
        for flagged, found, reading in rows:
            figures["answers"] += 1
            figures["lint"] += flagged
            figures["reader"] += found
            figures["read"] += reading.get("state") == "read"
            figures[UNPARSED] += reading.get("state") == UNPARSED
            figures["dropped"] += reading.get("dropped", 0)
    if name := run.settings.generation.leak_reader:
        digest = run_instructions(run, READ).sha256
        calls = Call.objects.filter(run=run, endpoint_name=name, instructions_hash=digest)
        asked = calls.aggregate(n=Count("id"), unknown=Count("id", filter=Q(cost=None)), cost=Sum("cost"))
        known = None if asked["unknown"] else exact_money(Decimal(asked["cost"] or 0))
        figures |= {"reader_model": name, "reader_calls": asked["n"], "cost": known}
    return figures


def leak_lines(figures: Json) -> list[str]:
    """Return the figures in words."""
    if not figures.get("answers"):
        return []
    lines = [f"Leak lint: flagged {figures['lint']:,} of {counted(figures['answers'], 'challenger answer')}."]
    if name := figures.get("reader_model"):
        lines.append(
            f"Second reader {name}: flagged {figures['reader']:,} of {counted(figures['read'], 'answer')}; "
            f"{counted(figures[UNPARSED], 'reply')} could not be parsed; not counted, because the quote is missing: "
            f"{counted(figures['dropped'], 'finding')}. {counted(figures['reader_calls'], 'call')}, "
            f"cost {money(figures['cost'])}."
        )
    return lines
