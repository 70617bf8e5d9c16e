"""Stage `judge`: every judge reads every duel in both orders; what does not parse is asked again, then missing."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import F

from curation.duels.config import PanelConfig, panel_config, targets_named
from curation.duels.fingerprint import fingerprint
from curation.duels.generate import clean
from curation.duels.models import Duel, Order, Verdict
from curation.duels.pairing import Entrants, pair
from curation.duels.params import JudgeParams
from curation.duels.selecting import prompts_in
from curation.llm.completion import Request, Target
from curation.projects.instructions import Instructions, instructions_for
from curation.runs.calls import Answered
from curation.runs.drive_llm import LlmContext
from curation.runs.kinds import ItemFailed, Json, PlannedItem, Write
from curation.runs.models import Item, Run
from curation.samples.models import Flag
from judging.panel import VERDICT_SCHEMA, JudgePrompt, judge_messages
from judging.parsing import ParsedVerdict, Unparsed, parse_verdict

RESPONSE_FORMAT = {
    "type": "json_schema",
    "json_schema": {"name": "verdict", "strict": True, "schema": VERDICT_SCHEMA},
}


@dataclass(frozen=True, slots=True)
class JudgeJob:
    """One reading: the duel's texts in the order in which they are shown."""

    config: PanelConfig
    instructions: Instructions
    target: Target
    duel_id: int
    order: str
    prompt: JudgePrompt
    posing: bool
    fresh: bool

    @property
    def fingerprint(self) -> str:
        params = {**self.config.params, "show_reference": self.config.show_reference}
        return fingerprint("judge", self.target, self.instructions.sha256, params)


@dataclass(frozen=True, slots=True)
class Reading:
    """What one attempt came to."""

    said: Answered
    verdict: ParsedVerdict | Unparsed


class JudgeStage:
    name = "judge"
    queue = "llm"

    def __init__(self, params: JudgeParams, entrants: Callable[[Run], Entrants]) -> None:
        self._params = params
        self._entrants = entrants

    def targets(self, run: Run) -> Sequence[Target]:
        return targets_named(run.project, panel_config(run.project, self._params).judges, "judges")

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        config = panel_config(run.project, self._params)
        instructions = instructions_for(run.project, "judge")
        marks = {t.name: _fingerprint(t, config, instructions) for t in self.targets(run)}
        prompts = prompts_in(run.project, self._params.filter)
        duels = pair(project=run.project, prompts=prompts, entrants=self._entrants(run), mode=config.mode)
        read = _read_already(run, marks) if not self._params.fresh else set()
        for duel_id in duels:
            for judge in config.judges:
                for order in config.orders:
                    known = (duel_id, judge, order) in read
                    yield PlannedItem(
                        f"{duel_id}:{judge}:{order}",
                        duel_id,
                        {"judge": judge, "order": order},
                        skipped="judged already, with the same model, instructions and parameters" if known else "",
                    )

    def load(self, run: Run, items: Sequence[Item]) -> dict[int, JudgeJob]:
        config = panel_config(run.project, self._params)
        instructions = instructions_for(run.project, "judge")
        targets = {target.name: target for target in self.targets(run)}
        found = Duel.objects.select_related("prompt__text", "challenger__text", "king__text")
        duels = found.in_bulk({item.target_id for item in items if item.target_id is not None})
        jobs = {}
        for item in items:
            duel = duels.get(item.target_id or 0)
            if duel is None:
                continue
            prompt, posing = _prompt(duel, item.data["order"], config, instructions)
            jobs[item.pk] = JudgeJob(
                config,
                instructions,
                targets[item.data["judge"]],
                duel.pk,
                item.data["order"],
                prompt,
                posing,
                self._params.fresh,
            )
        return jobs

    async def work(self, context: LlmContext, item: Item, job: JudgeJob | None) -> Write:
        if job is None:
            raise ItemFailed("its duel was deleted")
        readings: list[Reading] = []
        for number in range(1, job.config.attempts + 1):
            request = Request(job.prompt.messages, job.config.params, attempt=number, schema=RESPONSE_FORMAT)
            digest = job.instructions.sha256
            said = await context.ask(item, job.target, request, instructions_hash=digest, fresh=job.fresh)
            verdict = parse_verdict(said.completion.text, finish_reason=said.completion.finish_reason)
            readings.append(Reading(said, verdict))
            if isinstance(verdict, ParsedVerdict):
                break
        return lambda: _save(context.run, job, readings)


def _fingerprint(target: Target, config: PanelConfig, instructions: Instructions) -> str:
    params = {**config.params, "show_reference": config.show_reference}
    return fingerprint("judge", target, instructions.sha256, params)


def _read_already(run: Run, marks: dict[str, str]) -> set[tuple[int, str, str]]:
    """(duel, judge, order) of the project's parsed verdicts that these judges would give again."""
    known = Verdict.objects.filter(duel__project=run.project, parsed=True, fingerprint__in=set(marks.values()))
    rows = known.values_list("duel_id", "judge", "order", "fingerprint").iterator(5000)
    return {(duel, judge, order) for duel, judge, order, mark in rows if marks.get(judge) == mark}


def _prompt(duel: Duel, order: str, config: PanelConfig, instructions: Instructions) -> tuple[JudgePrompt, bool]:
    """What the judge is shown, and whether an answer tried to pose as judge or delimiter."""
    text = duel.prompt.text
    reference = str(text.reference.get("content") or "")
    opponent = duel.king.text.text if duel.king is not None else reference
    challenger = duel.challenger.text.text
    first, second = (opponent, challenger) if order == Order.KING_FIRST else (challenger, opponent)
    # In mode 1 the reference is one of the answers; showing it again would give it away.
    shown = reference if config.show_reference and duel.king is not None else None
    prompt = judge_messages(
        instructions=instructions.text, history=text.history, first=first, second=second, reference=shown
    )
    return prompt, any(finding.startswith("answer_") for finding in prompt.findings)


def _save(run: Run, job: JudgeJob, readings: Sequence[Reading]) -> Json:
    last = readings[-1]
    said = last.said.completion
    parsed = isinstance(last.verdict, ParsedVerdict)
    Verdict.objects.update_or_create(
        duel_id=job.duel_id,
        judge=job.target.name,
        order=job.order,
        defaults={
            "run": run,
            "call_id": last.said.call_id,
            "family": job.target.family,
            "fingerprint": job.fingerprint,
            "instructions_hash": job.instructions.sha256,
            "parsed": parsed,
            "dimensions": dict(last.verdict.dimensions) if isinstance(last.verdict, ParsedVerdict) else {},
            "reason": clean(last.verdict.reason),
            "raw": clean(said.text),
            "attempts": len(readings),
            "tokens": sum((r.said.completion.tokens_in or 0) + (r.said.completion.tokens_out or 0) for r in readings),
            "cost": _sum_costs(readings),
            "latency_ms": said.latency_ms,
        },
    )
    if job.posing:
        Duel.objects.filter(pk=job.duel_id).update(flags=F("flags").bitor(Flag.INJECTION.value))
    return {"parsed": parsed, "attempts": len(readings)}


def _sum_costs(readings: Sequence[Reading]) -> Decimal | None:
    """US dollars of all attempts; None as soon as one is unknown."""
    costs = [reading.said.completion.cost for reading in readings]
    return None if None in costs else sum((cost for cost in costs if cost is not None), Decimal(0))
