"""Stage `verdict`: accept the run's challenger or not, and compute how its judges behaved."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from itertools import islice

from django.db.models import Count, F, Max, Q, Sum

from curation.duels.answers.read import leak_figures
from curation.duels.models import Answer, Exclusion, Verdict
from curation.duels.params import JudgeParams, Panel, RescoreParams, panel_of
from curation.duels.score.stage import Scored, score_duels
from curation.runs.kinds import Json, PlannedItem, WorkContext, Write
from curation.runs.models import Item, ItemState, Run
from curation.samples.models import Bucket
from judging.statistics.acceptance import GateDuel, GateSettings, acceptance
from judging.statistics.findings import findings
from judging.statistics.judges import mean_lengths, summarise
from judging.statistics.readings import JudgedDuel, panel_readings

CHUNK = 500
MAX_REASONS = 50
# The precision of stored costs; SQLite's sums have more, meaningless digits.
STORED = Decimal("0.00000001")


class VerdictStage:
    """One item, which reads all duels of the run and writes the figures into its result."""

    name = "verdict"
    queue = "default"

    def __init__(self, params: JudgeParams | RescoreParams, duels: Callable[[Run], Iterator[int]]) -> None:
        self._params = params
        self._duels = duels

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        yield PlannedItem("verdict")

    def work(self, context: WorkContext, item: Item) -> Write:
        run = context.run
        panel = panel_of(run.settings, self._params)
        result = _result(run, panel, self._duels(run), context)

        def write() -> Json:
            row = Run.objects.select_for_update().get(pk=run.pk)
            Run.objects.filter(pk=run.pk).update(result={**row.result, **result})
            return {}

        return write


@dataclass(slots=True)
class _Figures:
    gated: list[GateDuel] = field(default_factory=list)
    buckets: dict[str, int] = field(default_factory=lambda: dict.fromkeys(Bucket.values, 0))
    judged: list[JudgedDuel] = field(default_factory=list)
    winners: list[int] = field(default_factory=list)
    losers: list[int] = field(default_factory=list)


def _result(run: Run, panel: Panel, duels: Iterator[int], context: WorkContext) -> Json:
    figures = _Figures()
    ids: list[int] = []
    while chunk := list(islice(duels, CHUNK)):
        context.checkpoint()
        ids += chunk
        _count(figures, score_duels(run, chunk, panel))
    gate = run.settings.gate
    settings = GateSettings(
        min_parsed=gate.min_parsed,
        win_margin=gate.win_margin,
        resamples=gate.resamples,
        seed=gate.seed,
        cluster=gate.cluster,
        min_judges=panel.min_judges,
    )
    accepted = acceptance(figures.gated, panel=panel.judges, settings=settings)
    return {
        **asdict(accepted),
        "buckets": figures.buckets,
        "judges": _judges(figures, panel, ids),
        "lengths": asdict(mean_lengths(winners=figures.winners, losers=figures.losers)),
        "leak_findings": leak_figures(run),
        "skipped": skip_reasons(run),
        "exclusions": Exclusion.objects.filter(project=run.project).count(),
    }


def _count(figures: _Figures, scored: list[Scored]) -> None:
    lengths = _answer_lengths(scored)
    for entry in scored:
        prompt = entry.duel.prompt
        leak = entry.duel.challenger.leak_flag or entry.duel.challenger.reader_flag
        figures.gated.append(GateDuel(entry.score, prompt.repo, prompt.instance_id, leak))
        figures.buckets[entry.bucket] += 1
        king, challenger = lengths[entry.duel.pk]
        families = (entry.duel.king.family if entry.duel.king else "", entry.duel.challenger.family)
        figures.judged.append(
            JudgedDuel(entry.verdicts, entry.score, prompt.instance_id, leak, (king, challenger), families)
        )
        if entry.score.score is None:
            continue
        if king and challenger and entry.score.score != 50.0:
            won, lost = (challenger, king) if entry.score.score > 50.0 else (king, challenger)
            figures.winners.append(won)
            figures.losers.append(lost)


def _answer_lengths(scored: list[Scored]) -> dict[int, tuple[int, int]]:
    """Return (king, challenger) tokens by duel; 0 for the reference, whose tokens are not counted."""
    ids = {pk for entry in scored for pk in (entry.duel.king_id, entry.duel.challenger_id) if pk is not None}
    tokens = dict(Answer.objects.filter(pk__in=ids).values_list("pk", "tokens"))
    return {
        entry.duel.pk: (tokens.get(entry.duel.king_id or 0, 0), tokens[entry.duel.challenger_id]) for entry in scored
    }


def _judges(figures: _Figures, panel: Panel, ids: list[int]) -> list[Json]:
    """Return each judge's rates, tokens, cost (None if unknown) and whether it judged its own family."""
    families: dict[str, str] = {}
    usage: dict[str, Json] = {name: {"tokens": 0, "cost": Decimal(0), "unknown": 0, "own": 0} for name in panel.judges}
    for start in range(0, len(ids), CHUNK):
        rows = Verdict.objects.filter(duel_id__in=ids[start : start + CHUNK], judge__in=panel.judges)
        own_family = Q(family=F("duel__king__family")) | Q(family=F("duel__challenger__family"))
        for row in rows.values("judge").annotate(
            sum_tokens=Sum("tokens"),
            sum_cost=Sum("cost"),
            unknown=Count("id", filter=Q(cost=None)),
            own=Count("id", filter=~Q(family="") & own_family),
            family=Max("family"),
        ):
            families[row["judge"]] = row["family"]
            entry = usage[row["judge"]]
            entry["tokens"] += row["sum_tokens"] or 0
            entry["cost"] += row["sum_cost"] or Decimal(0)
            entry["unknown"] += row["unknown"]
            entry["own"] += row["own"]
    readings = panel_readings(figures.judged, panel=panel.judges, families=families)
    said: dict[str, list[Json]] = {name: [] for name in panel.judges}
    for finding in findings(readings):
        said[finding.judge].append({"flaw": finding.flaw, "sentence": finding.sentence, "p": finding.p})
    found = []
    for summary in summarise(readings):
        entry = usage[summary.judge]
        known = None if entry["unknown"] else f"{entry['cost'].quantize(STORED).normalize():f}"
        rates = {key: value for key, value in asdict(summary).items() if key != "judge"}
        own = {"same_family": bool(entry["own"]), "findings": said[summary.judge]}
        found.append({"name": summary.judge, **rates, "tokens": entry["tokens"], "cost": known, **own})
    return found


def skip_reasons(run: Run) -> Json:
    """Return `{stage: {reason: items}}` of skipped and failed items, the most frequent reasons first."""
    rows = Item.objects.filter(run=run, state__in=[ItemState.SKIPPED, ItemState.FAILED]).order_by()
    counted = rows.values("stage", "reason").annotate(n=Count("id")).order_by("-n", "stage", "reason")
    found: dict[str, dict[str, int]] = {}
    for row in counted[:MAX_REASONS]:
        found.setdefault(row["stage"], {})[row["reason"]] = row["n"]
    return found


def duels_of(run: Run) -> Iterator[int]:
    """Return the ids of the duels in the run's stage `judge`, ascending."""
    rows = Item.objects.filter(run=run, stage="judge").order_by("target_id").values_list("target_id", flat=True)
    for target_id in rows.distinct().iterator(5000):
        if target_id is not None:
            yield target_id


def duels_scored_by(run: Run) -> Iterator[int]:
    """Return the ids of the duels that the run scored, ascending."""
    for data in Item.objects.filter(run=run, stage="score").order_by("id").values_list("data", flat=True):
        yield from data["duels"]
