"""Stage `judge`: each judge reads each duel in both orders. A reply that does not parse is retried, then missing."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import islice, product
from typing import ClassVar

from django.db.models import F, Sum

from curation.duels.answers.stage import fingerprint
from curation.duels.filters import prompts_in
from curation.duels.judge.controls import create_controls, mix_in, sides_of
from curation.duels.judge.pairing import Entrants, pair
from curation.duels.models import Duel, Opponent, Order, Verdict
from curation.duels.params import JudgeParams, Panel, controls_wanted, panel_of
from curation.duels.score.readings import MARK
from curation.llm.client.completion import CompletionRequest, EndpointTarget
from curation.projects.instructions.texts import Instructions
from curation.runs.calls.record import CallAnswer
from curation.runs.calls.targets import call_params, delimiter_secret, run_instructions, targets_named
from curation.runs.kinds import MOST_OPEN_CALLS, ItemFailed, Json, LlmContext, PlannedItem, Write
from curation.runs.models import Item, Run
from curation.samples.models import Flag
from curation.web.ids import IdList
from curation.web.text.storable import storable
from judging.panel.parsing import ParsedVerdict, Unparsed, parse_verdict
from judging.panel.prompt import JudgePrompt, judge_messages, verdict_schema
from judging.panel.rubric import read_rubric, rubric_instructions

CHUNK = 1000
JUDGED_ALREADY = "judged already, with the same model, instructions and parameters"
ReadingKey = tuple[int, str, str]


@dataclass(frozen=True)
class JudgePlan:
    """What all readings of a run share. `targets` are by judge."""

    panel: Panel
    instructions: Instructions
    rubric: Instructions
    targets: dict[str, EndpointTarget]

    @classmethod
    def of(cls, run: Run, panel: Panel, targets: Sequence[EndpointTarget]) -> "JudgePlan":
        by_name = {target.name: target for target in targets}
        return cls(panel, run_instructions(run, "judge"), run_instructions(run, "rubric"), by_name)

    @cached_property
    def dimensions(self) -> tuple[str, ...]:
        return tuple(dimension.name for dimension in read_rubric(self.rubric.text))

    @cached_property
    def system(self) -> str:
        """The judge's instructions with the rubric."""
        return f"{self.instructions.text.rstrip()}\n\n{rubric_instructions(read_rubric(self.rubric.text))}"

    @property
    def response_format(self) -> dict[str, object]:
        schema = {"name": "verdict", "strict": True, "schema": verdict_schema(self.dimensions)}
        return {"type": "json_schema", "json_schema": schema}

    def params(self, judge: str) -> dict[str, object]:
        return call_params(self.targets[judge], self.panel.params)

    def fingerprint(self, judge: str) -> str:
        params = {**self.params(judge), "show_reference": self.panel.show_reference, "rubric": self.rubric.sha256}
        return fingerprint("judge", self.targets[judge], self.instructions.sha256, params)

    def fingerprints(self) -> dict[str, str]:
        return {judge: self.fingerprint(judge) for judge in self.targets}


@dataclass(frozen=True, slots=True)
class JudgeJob:
    """A reading to make. `tried` is the number of attempts of earlier runs, of which none did parse."""

    plan: JudgePlan
    target: EndpointTarget
    duel: Duel
    order: str
    tried: int


JudgeReading = tuple[CallAnswer, ParsedVerdict | Unparsed]


class JudgeStage:
    name = "judge"
    queue = "llm"
    most_open = MOST_OPEN_CALLS
    lasting: ClassVar = True

    def __init__(self, params: JudgeParams, entrants: Callable[[Run], Entrants]) -> None:
        self._params, self._entrants = params, entrants

    def targets(self, run: Run) -> Sequence[EndpointTarget]:
        return targets_named(run.project, panel_of(run.settings, self._params).judges, "judges")

    def read(self, run: Run) -> JudgePlan:
        return JudgePlan.of(run, panel_of(run.settings, self._params), self.targets(run))

    def duels(self, run: Run) -> Iterator[int]:
        """The duels of the run's answers; missing ones are created."""
        prompts = prompts_in(run.project, self._params.filter)
        mode = self.read(run).panel.mode
        return pair(project=run.project, prompts=prompts, entrants=self._entrants(run), mode=mode)

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        plan, duels = self.read(run), self.duels(run)
        share, first = run.settings.panel.controls, True
        while chunk := list(islice(duels, CHUNK)):
            controls = create_controls(chunk, controls_wanted(len(chunk), share, first=first))
            chunk, first = list(mix_in(chunk, controls)), False
            yield from self.readings(plan, chunk, plan.panel.judges)

    def readings(self, plan: JudgePlan, duels: Sequence[int], judges: Sequence[str]) -> Iterator[PlannedItem]:
        """Return an item per duel, judge and order; those with a verdict of the same fingerprint are skipped."""
        marks = plan.fingerprints()
        read = {} if self._params.fresh else _parsed(duels, marks)
        for duel_id, judge, order in product(duels, judges, plan.panel.orders):
            known = read.get((duel_id, judge, order))
            data: Json = {"judge": judge, "order": order, "fingerprint": marks[judge][:MARK]}
            yield PlannedItem(
                f"{duel_id}:{judge}:{order}",
                duel_id,
                data if known is None else {**data, "verdict": known},
                skipped=JUDGED_ALREADY if known is not None else "",
            )

    def load(self, run: Run, items: Sequence[Item]) -> dict[int, JudgeJob]:
        plan = self.read(run)
        found = Duel.everything.all().with_histories()
        duels = found.in_bulk({item.target_id for item in items if item.target_id is not None})
        tried = _tried(list(duels), plan.fingerprints())
        jobs = {}
        for item in items:
            duel = duels.get(item.target_id or 0)
            if duel is not None:
                judge, order = item.data["judge"], item.data["order"]
                before = tried.get((duel.pk, judge, order), 0)
                jobs[item.pk] = JudgeJob(plan, plan.targets[judge], duel, order, before)
        return jobs

    async def work(self, context: LlmContext, item: Item, job: JudgeJob | None) -> Write:
        if job is None:
            raise ItemFailed("The duel was deleted.")
        readings, injection = await read_duel(context, item, job, fresh=self._params.fresh)
        return lambda: _save(context.run, job, readings, injection)


async def read_duel(context: LlmContext, item: Item, job: JudgeJob, *, fresh: bool) -> tuple[list[JudgeReading], bool]:
    """Return the judge's replies, of which the last one counts, and whether an answer imitates a verdict or a
    delimiter. Findings in the history do not count."""
    params, digest = job.plan.params(job.target.name), job.plan.instructions.sha256
    readings: list[JudgeReading] = []
    for number in range(job.tried + 1, job.tried + job.plan.panel.attempts + 1):
        prompt = _prompt(job, number)
        request = CompletionRequest(prompt.messages, params, attempt=number, schema=job.plan.response_format)
        answered = await context.ask(item, job.target, request, instructions_hash=digest, fresh=fresh)
        completion, dimensions = answered.completion, job.plan.dimensions
        verdict = parse_verdict(completion.text, finish_reason=completion.finish_reason, dimensions=dimensions)
        readings.append((answered, verdict))
        if isinstance(verdict, ParsedVerdict):
            break
    return readings, any(finding.startswith("answer_") for finding in prompt.findings)


def _parsed(duel_ids: Sequence[int], marks: dict[str, str]) -> dict[ReadingKey, int]:
    """Return the id of the newest parsed verdict with these fingerprints, by duel, judge and order."""
    known = Verdict.objects.filter(duel_id__in=IdList(duel_ids), judge__in=marks, parsed=True).order_by("pk")
    rows = known.values_list("duel_id", "judge", "order", "fingerprint", "pk")
    return {(duel, judge, order): pk for duel, judge, order, mark, pk in rows if marks.get(judge) == mark}


def _tried(duel_ids: Sequence[int], marks: dict[str, str]) -> dict[ReadingKey, int]:
    """Return the number of attempts that did not parse, of all runs, by duel, judge and order."""
    known = Verdict.objects.filter(duel_id__in=IdList(duel_ids), judge__in=marks, parsed=False).order_by()
    rows = known.values_list("duel_id", "judge", "order", "fingerprint").annotate(Sum("attempts"))
    return {(duel, judge, order): tried for duel, judge, order, mark, tried in rows if marks.get(judge) == mark}


def _prompt(job: JudgeJob, attempt: int) -> JudgePrompt:
    """Return the judge's messages. In mode 1 the reference is one of the answers, so it is not shown beside them."""
    duel, text = job.duel, job.duel.prompt.text
    opponent, challenger = sides_of(duel)
    first, second = (opponent, challenger) if job.order == Order.KING_FIRST else (challenger, opponent)
    shown = job.plan.panel.show_reference and duel.opponent == Opponent.KING
    return judge_messages(
        instructions=job.plan.system,
        history=text.history,
        first=first,
        second=second,
        reference=duel.reference_text if shown else None,
        secret=delimiter_secret(),
        call=f"{job.target.name} {job.order} {attempt}",
        dimensions=job.plan.dimensions,
    )


def _save(run: Run, job: JudgeJob, readings: Sequence[JudgeReading], injection: bool) -> Json:
    """Save the run's last reading. The cost of each attempt is kept in its call."""
    answered, verdict = readings[-1]
    completions = [each.completion for each, _ in readings]
    costs = [each.cost for each in completions]
    parsed = isinstance(verdict, ParsedVerdict)
    mark = job.plan.fingerprint(job.target.name)
    key = {"duel": job.duel, "judge": job.target.name, "order": job.order, "fingerprint": mark, "run": run}
    columns = {
        "call_id": answered.call_id,
        "family": job.target.family,
        "instructions_hash": job.plan.instructions.sha256,
        "parsed": parsed,
        "dimensions": dict(verdict.dimensions) if isinstance(verdict, ParsedVerdict) else {},
        "reason": storable(verdict.reason),
        "raw": storable(answered.completion.text),
        "attempts": len(readings),
        "tokens": sum((c.tokens_in or 0) + (c.tokens_out or 0) for c in completions),
        "cost": None if None in costs else sum((cost for cost in costs if cost is not None), Decimal(0)),
        "latency_ms": answered.completion.latency_ms,
    }
    # An item that is done again replaces its own verdict, never that of another run.
    Verdict.objects.bulk_create(
        [Verdict(**key, **columns)], update_conflicts=True, unique_fields=list(key), update_fields=list(columns)
    )
    if injection and not job.duel.control:
        Duel.everything.filter(pk=job.duel.pk).update(flags=F("flags").bitor(Flag.INJECTION.value))
    return {"parsed": parsed, "attempts": len(readings)}
