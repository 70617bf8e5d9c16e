"""Stage `judge` of new texts: each judge compares each text with the king's answer and with its parent."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from django.db.models import QuerySet

from curation.duels.judge.stage import JudgePlan
from curation.duels.models import Duel, Opponent, Order
from curation.duels.params import panel_of
from curation.llm.client.completion import CompletionRequest, EndpointTarget
from curation.review.models import Revision, Suggestion, TextScore
from curation.review.refine.params import PanelParams
from curation.runs.calls.targets import delimiter_secret, targets_named
from curation.runs.kinds import MOST_OPEN_CALLS, ItemFailed, Json, LlmContext, PlannedItem, Write
from curation.runs.models import Item, Run
from curation.web.ids import IdList
from curation.web.text.storable import storable
from judging.panel.parsing import ParsedVerdict, parse_verdict
from judging.panel.prompt import judge_messages

Texts = Callable[[Run], "QuerySet[Suggestion] | QuerySet[Revision]"]
CHUNK = 1000


@dataclass(frozen=True, slots=True)
class CompareJob:
    plan: JudgePlan
    duel: Duel
    text: str
    other: str


def judge_plan(run: Run, params: PanelParams) -> JudgePlan:
    panel = panel_of(run.settings, params.judging())
    targets = targets_named(run.project, panel.judges, "judges")
    return JudgePlan.of(run, panel, targets)


class CompareStage:
    """`texts` returns the run's new texts."""

    name = "judge"
    queue = "llm"
    most_open = MOST_OPEN_CALLS
    lasting: ClassVar = True

    def __init__(self, params: PanelParams, texts: Texts) -> None:
        self._params, self._texts = params, texts

    def targets(self, run: Run) -> Sequence[EndpointTarget]:
        return list(judge_plan(run, self._params).targets.values())

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        panel = judge_plan(run, self._params).panel
        for pk in self._texts(run).order_by("pk").values_list("pk", flat=True).iterator(CHUNK):
            for against in TextScore.Against.values:
                for judge in panel.judges:
                    for order in panel.orders:
                        data = {"against": against, "judge": judge, "order": order}
                        yield PlannedItem(f"{pk}:{against}:{judge}:{order}", pk, data)

    def load(self, run: Run, items: Sequence[Item]) -> dict[int, CompareJob]:
        plan = judge_plan(run, self._params)
        rows = self._texts(run).filter(pk__in={item.target_id for item in items}).select_related("parent")
        texts = {row.pk: row for row in rows}
        duels = Duel.objects.filter(sample__in=IdList([row.sample_id for row in texts.values()]))
        by_sample = {duel.sample_id: duel for duel in duels.with_histories()}
        jobs = {}
        for item in items:
            row = texts.get(item.target_id or 0)
            duel = by_sample.get(row.sample_id) if row else None
            if row is not None and duel is not None:
                parent = row.parent.text if row.parent else duel.challenger.text.text
                other = duel.opponent_text if item.data["against"] == TextScore.Against.KING else parent
                jobs[item.pk] = CompareJob(plan, duel, row.text, other)
        return jobs

    async def work(self, context: LlmContext, item: Item, job: CompareJob | None) -> Write:
        if job is None:
            raise ItemFailed("The sample was deleted.")
        judge, plan = item.data["judge"], job.plan
        for number in range(1, plan.panel.attempts + 1):
            messages = _messages(job, item.data["order"], f"{judge} {item.data['order']} {number}")
            request = CompletionRequest(messages, plan.params(judge), attempt=number, schema=plan.response_format)
            digest = plan.instructions.sha256
            answered = await context.ask(
                item, plan.targets[judge], request, instructions_hash=digest, fresh=self._params.fresh
            )
            completion = answered.completion
            verdict = parse_verdict(completion.text, finish_reason=completion.finish_reason, dimensions=plan.dimensions)
            if isinstance(verdict, ParsedVerdict):
                break
        parsed = isinstance(verdict, ParsedVerdict)
        reading: Json = {
            "parsed": parsed,
            "dimensions": dict(verdict.dimensions) if isinstance(verdict, ParsedVerdict) else {},
            "reason": storable(verdict.reason),
        }
        return lambda: reading


def _messages(job: CompareJob, order: str, call: str) -> Sequence[dict[str, str]]:
    """Return the judge's messages. The other text takes the king's seat."""
    first, second = (job.other, job.text) if order == Order.KING_FIRST else (job.text, job.other)
    shown = job.plan.panel.show_reference and job.duel.opponent == Opponent.KING
    return judge_messages(
        instructions=job.plan.system,
        history=job.duel.prompt.text.history,
        first=first,
        second=second,
        reference=job.duel.reference_text if shown else None,
        secret=delimiter_secret(),
        call=call,
        dimensions=job.plan.dimensions,
    ).messages
