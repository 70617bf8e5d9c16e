import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import islice
from typing import Any

from django.db.models import Count, QuerySet, Sum

from curation.duels.cascade.first_judge import CHUNK, CascadeParams, chunks, drawn_duels, sure_of
from curation.duels.estimate import judge_estimate
from curation.duels.filters import AskedFilter, check_filter
from curation.duels.judge.pairing import entrants_named
from curation.duels.judge.stage import JudgeStage
from curation.duels.kinds import settle_panel
from curation.duels.models import Verdict
from curation.duels.params import Panel, judges_needed, judges_of
from curation.duels.score.stage import ScoredDuel, ScoreStage, score_duels
from curation.duels.verdict.stage import duels_of
from curation.projects.models import Project
from curation.runs.calls.targets import targets_named
from curation.runs.kinds import Estimate, Json, Kind, Pipeline, PlannedItem, Stage
from curation.runs.models import Item, ItemState, Run
from curation.samples.list.pages import review_steps
from curation.web.ids import IdList
from curation.web.problems import FieldError, Invalid
from curation.web.refusals import all_checks
from curation.web.text.figures import counted, exact_money, percent
from judging.statistics.guarantee import enough_looks

SURE = "the first judge is sure"


class CascadeStage(JudgeStage):
    def __init__(self, params: CascadeParams) -> None:
        super().__init__(params, lambda run: entrants_named(params))
        self._cascade = params


class FirstStage(CascadeStage):
    def plan(self, run: Run) -> Iterable[PlannedItem]:
        plan, duels = self.read(run), self.duels(run)
        while chunk := list(islice(duels, CHUNK)):
            yield from self.readings(plan, chunk, plan.panel.judges[:1])


class CascadeCompareStage(CascadeStage):
    name = "compare"

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        plan = self.read(run)
        yield from self.readings(plan, drawn_duels(run, self._cascade), plan.panel.judges[1:])


class PanelStage(CascadeStage):
    """The readings that the first judge makes needless are skipped, so that the run shows them."""

    name = "panel"

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        plan, found = self.read(run), sure_of(run, self._cascade)
        drawn = {one.duel for one in found.drawn}
        for chunk in chunks([pk for pk in duels_of(run) if pk not in drawn]):
            for item in self.readings(plan, chunk, plan.panel.judges[1:]):
                yield _sure(item) if item.target_id in found.duels else item


class CascadeScoreStage(ScoreStage):
    def score(self, run: Run, ids: Sequence[int], panel: Panel) -> list[ScoredDuel]:
        """The score of one judge counts only where it is sure; elsewhere a duel needs them all."""
        scored = score_duels(run, ids, panel, self._params)
        sure = set(sure_items(run).filter(target_id__in=IdList(ids)).values_list("target_id", flat=True))
        needed = len(panel.judges)
        return [one if one.duel.pk in sure or len(one.score.judges) == needed else _unparsed(one) for one in scored]


def sure_items(run: Run) -> QuerySet[Item]:
    """The readings that were skipped because the first judge is sure."""
    return Item.objects.filter(run=run, stage=PanelStage.name, state=ItemState.SKIPPED, reason=SURE)


def _sure(item: PlannedItem) -> PlannedItem:
    """A verdict of an earlier run is not used either: the promise is about the score of the first judge."""
    data = {name: value for name, value in item.data.items() if name != "verdict"}
    return replace(item, skipped=SURE, data=data)


def _unparsed(one: ScoredDuel) -> ScoredDuel:
    score = replace(one.score, score=None, metrics={}, parsed=False)
    return replace(one, score=score, bucket="unparsed")


class CascadeRun(Kind[CascadeParams]):
    name = "cascade"
    needs = "Answer the turns first: launch a duel, or king and challenger."
    title = "Cascade: one judge first, the panel where it is unsure"
    summary = "A cheap judge reads every duel of existing answers, and the full panel only those where it is unsure."
    pipeline = Pipeline.DUELS
    filter = AskedFilter
    params = CascadeParams
    section_template = "duels/cascade/_section.html"
    set_at_launch = frozenset({"seed", "min_judges"})

    def stages(self, params: CascadeParams) -> Sequence[Stage]:
        judged = [FirstStage(params), CascadeCompareStage(params), PanelStage(params)]
        return [*judged, CascadeScoreStage(params, duels_of)]

    def needed(self, project: Project, given: Mapping[str, Any]) -> Collection[str]:
        return ["model", *judges_needed(project.settings)]

    def check(self, project: Project, params: CascadeParams) -> None:
        params.seed = params.seed or secrets.randbits(31)
        with all_checks() as check:
            with check():
                check_filter(params.filter)
            with check():
                targets_named(project, [params.model], "model")
            with check():
                others = [name for name in judges_of(project.settings, params) if name != params.model]
                if not others:
                    text = "The panel has no judge beside the first. Name at least one more."
                    raise Invalid(text, errors=[FieldError("params.judges", "at least one more judge is needed")])
                targets_named(project, others, "judges")
                params.judges, params.min_judges = [params.model, *others], 1
                settle_panel(project, params)
            with check():
                least = enough_looks(params.alpha, params.delta)
                if params.size < least:
                    text = f"is too few: without one difference it takes {least} duels to prove this α and δ"
                    raise Invalid(f"The size {params.size} {text}.", errors=[FieldError("params.size", text)])

    def estimate(self, project: Project, params: CascadeParams) -> Estimate:
        most = "At most: where the first judge is sure, no other judge is asked."
        return Estimate.total([judge_estimate(project, params)], most)

    def finish(self, run: Run, params: CascadeParams) -> Json:
        found, level = sure_of(run, params), None
        if found.level is not None:
            level = {"confidence": round(found.level.threshold, 4), "duels": found.level.unseen}
        return {
            "judge": params.model,
            "duels": sum(1 for _ in duels_of(run)),
            "drawn": len(found.drawn),
            "differ": sum(one.differs for one in found.drawn),
            "proven": level,
            "promise": _promise(params, found.level.unseen) if found.level else "",
            **_saved(run),
        }

    def conclude(self, run: Run) -> str:
        proven, duels = run.result["proven"], run.result["duels"]
        sure = proven["duels"] if proven else 0
        return f"{counted(duels, 'duel')}, {sure:,} of them decided by {run.result['judge']} alone."

    def section(self, run: Run) -> Mapping[str, object]:
        return {"run": run, "result": run.result if "promise" in run.result else None}

    def next_steps(self, run: Run) -> Sequence[tuple[str, str]]:
        return review_steps(run)


def _promise(params: CascadeParams, duels: int) -> str:
    return (
        f"With {percent(1 - params.delta, 1)} confidence, at most {percent(params.alpha, 1)} of the "
        f"{counted(duels, 'duel')} that {params.model} decided alone would have another bucket by the full panel."
    )


def _saved(run: Run) -> Json:
    """The calls that were not made, and their cost in dollars by the mean of each judge's verdicts in this run; None if
    one of these is unknown. A reading can take several calls; each counts as one."""
    skipped = dict(sure_items(run).order_by().values_list("data__judge").annotate(n=Count("pk")))
    rows = Verdict.objects.filter(run=run, judge__in=skipped).order_by().values("judge")
    costs = {row["judge"]: row for row in rows.annotate(n=Count("pk"), known=Count("cost"), cost=Sum("cost"))}
    made: Json = {"calls_saved": sum(skipped.values()), "cost_saved": None}
    if all(judge in costs and costs[judge]["n"] == costs[judge]["known"] for judge in skipped):
        saved = (costs[judge]["cost"] / costs[judge]["n"] * n for judge, n in skipped.items())
        made["cost_saved"] = exact_money(sum(saved, Decimal(0)))
    return made
