"""Stages of a cascade: `judge` is the first judge on all duels, `compare` the others on a random part, `panel` the
others where the first is unsure, `score` the scores."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice

from django.db.models import QuerySet

from curation.duels.cascade.sure import CHUNK, CascadeParams, chunks, drawn_duels, sure_of
from curation.duels.judge.pairing import Entrants
from curation.duels.judge.stage import JudgeStage
from curation.duels.params import Panel
from curation.duels.score.stage import Scored, ScoreStage, score_duels
from curation.duels.verdict.stage import duels_of
from curation.runs.kinds import PlannedItem
from curation.runs.models import Item, ItemState, Run
from curation.web.ids import IdList

SURE = "the first judge is sure"


class CascadeStage(JudgeStage):
    def __init__(self, params: CascadeParams) -> None:
        entrants = Entrants(king_model=params.king_model or "", challenger_model=params.challenger_model or "")
        super().__init__(params, lambda run: entrants)
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
    def score(self, run: Run, ids: Sequence[int], panel: Panel) -> list[Scored]:
        """The score of one judge counts only where it is sure; elsewhere a duel needs them all."""
        scored = score_duels(run, ids, panel, self._params)
        sure = set(sure_items(run).filter(target_id__in=IdList(ids)).values_list("target_id", flat=True))
        return [one if one.duel.pk in sure or _is_complete(one, panel) else _unparsed(one) for one in scored]


def sure_items(run: Run) -> QuerySet[Item]:
    """The readings that were skipped because the first judge is sure."""
    return Item.objects.filter(run=run, stage=PanelStage.name, state=ItemState.SKIPPED, reason=SURE)


def _sure(item: PlannedItem) -> PlannedItem:
    """A verdict of an earlier run is not used either: the promise is about the score of the first judge."""
    data = {name: value for name, value in item.data.items() if name != "verdict"}
    return replace(item, skipped=SURE, data=data)


def _is_complete(one: Scored, panel: Panel) -> bool:
    return len(one.score.judges) == len(panel.judges)


def _unparsed(one: Scored) -> Scored:
    score = replace(one.score, score=None, metrics={}, parsed=False)
    return replace(one, score=score, bucket="unparsed")
