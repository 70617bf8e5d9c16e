"""Stage `verdict`: whether the run's challenger is accepted, and how its judges behaved."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from itertools import islice

from django.db.models import Count, F, Q, Sum

from curation.duels.models import Answer, Exclusion, Verdict
from curation.duels.panel import PanelConfig, panel_config
from curation.duels.params import JudgeParams, RescoreParams
from curation.duels.report.skip_reasons import left_out
from curation.duels.score.stage import Scored, score_duels
from curation.runs.kinds import Json, PlannedItem, WorkContext, Write
from curation.runs.models import Item, Run
from curation.samples.models import Bucket
from judging.statistics.acceptance import GateSettings, acceptance
from judging.statistics.judges import JudgedDuel, judge_summary, mean_lengths

CHUNK = 500
# The precision that costs are stored with; SQLite's sums carry more digits than they know.
STORED = Decimal("0.00000001")


class VerdictStage:
    """One item: reads all duels of the run and writes the figures into the run's result."""

    name = "verdict"
    queue = "default"

    def __init__(self, params: JudgeParams | RescoreParams, duels: Callable[[Run], Iterator[int]]) -> None:
        self._params = params
        self._duels = duels

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        yield PlannedItem("verdict")

    def work(self, context: WorkContext, item: Item) -> Write:
        run = context.run
        config = panel_config(run.settings, self._params)
        result = _figures(run, config, self._duels(run), context)

        def write() -> Json:
            row = Run.objects.select_for_update().get(pk=run.pk)
            Run.objects.filter(pk=run.pk).update(result={**row.result, **result})
            return {}

        return write


@dataclass(slots=True)
class _Tally:
    scores: list[float] = field(default_factory=list)
    clusters: list[str] = field(default_factory=list)
    buckets: dict[str, int] = field(default_factory=lambda: dict.fromkeys(Bucket.values, 0))
    judged: list[JudgedDuel] = field(default_factory=list)
    winners: list[int] = field(default_factory=list)
    losers: list[int] = field(default_factory=list)
    done: int = 0


def _figures(run: Run, config: PanelConfig, duels: Iterator[int], context: WorkContext) -> Json:
    tally = _Tally()
    ids: list[int] = []
    while chunk := list(islice(duels, CHUNK)):
        context.checkpoint()
        ids += chunk
        _count(tally, score_duels(run, chunk, config))
    given = run.settings.gate
    settings = GateSettings(
        min_parsed=given.min_parsed, win_margin=given.win_margin, resamples=given.resamples, seed=given.seed
    )
    clusters = tally.clusters if given.cluster else [""] * len(tally.clusters)
    gate = acceptance(tally.scores, clusters, done=tally.done, settings=settings)
    lengths = mean_lengths(winners=tally.winners, losers=tally.losers)
    return {
        **asdict(gate),
        "buckets": tally.buckets,
        "judges": _judges(tally, config, ids),
        "lengths": {"winners": lengths.winners, "losers": lengths.losers},
        "skipped": left_out(run),
        "exclusions": Exclusion.objects.filter(project=run.project).count(),
    }


def _count(tally: _Tally, scored: list[Scored]) -> None:
    lengths = _answer_lengths(scored)
    for entry in scored:
        tally.done += 1
        tally.buckets[entry.bucket] += 1
        tally.judged.append(JudgedDuel(entry.verdicts, entry.score))
        if entry.score.score is None:
            continue
        tally.scores.append(entry.score.score)
        tally.clusters.append(entry.duel.prompt.instance_id)
        king, challenger = lengths[entry.duel.pk]
        if king and challenger and entry.score.score != 50.0:
            won, lost = (challenger, king) if entry.score.score > 50.0 else (king, challenger)
            tally.winners.append(won)
            tally.losers.append(lost)


def _answer_lengths(scored: list[Scored]) -> dict[int, tuple[int, int]]:
    """(king, challenger) tokens per duel; 0 for the reference, whose tokens nobody counted."""
    ids = {pk for entry in scored for pk in (entry.duel.king_id, entry.duel.challenger_id) if pk is not None}
    tokens = dict(Answer.objects.filter(pk__in=ids).values_list("pk", "tokens"))
    return {
        entry.duel.pk: (tokens.get(entry.duel.king_id or 0, 0), tokens[entry.duel.challenger_id]) for entry in scored
    }


def _judges(tally: _Tally, config: PanelConfig, ids: list[int]) -> list[Json]:
    """Per judge: its rates, tokens, cost (None when unknown) and self-preference."""
    spent: dict[str, Json] = {name: {"tokens": 0, "cost": Decimal(0), "unknown": 0, "own": 0} for name in config.judges}
    for start in range(0, len(ids), CHUNK):
        rows = Verdict.objects.filter(duel_id__in=ids[start : start + CHUNK], judge__in=config.judges)
        for row in rows.values("judge").annotate(
            sum_tokens=Sum("tokens"),
            sum_cost=Sum("cost"),
            unknown=Count("id", filter=Q(cost=None)),
            own=Count("id", filter=~Q(family="") & (Q(family=F("duel__king__family")) | _own_challenger())),
        ):
            entry = spent[row["judge"]]
            entry["tokens"] += row["sum_tokens"] or 0
            entry["cost"] += row["sum_cost"] or Decimal(0)
            entry["unknown"] += row["unknown"]
            entry["own"] += row["own"]
    found = []
    for summary in judge_summary(tally.judged, panel=config.judges):
        entry = spent[summary.judge]
        known = None if entry["unknown"] else f"{entry['cost'].quantize(STORED).normalize():f}"
        rates = {key: value for key, value in asdict(summary).items() if key != "judge"}
        own = {"same_family": bool(entry["own"])}
        found.append({"name": summary.judge, **rates, "tokens": entry["tokens"], "cost": known, **own})
    return found


def _own_challenger() -> Q:
    return Q(family=F("duel__challenger__family"))


def duels_of(run: Run) -> Iterator[int]:
    """Ids of the duels that the run's judge stage read or found read, ascending."""
    rows = Item.objects.filter(run=run, stage="judge").order_by("target_id").values_list("target_id", flat=True)
    for target_id in rows.distinct().iterator(5000):
        if target_id is not None:
            yield target_id


def duels_scored_by(run: Run) -> Iterator[int]:
    """Ids of the duels that the run's score stage scored, ascending."""
    for data in Item.objects.filter(run=run, stage="score").order_by("id").values_list("data", flat=True):
        yield from data["duels"]
