"""Stage `score`: verdicts become a score, a bucket and a sample. It asks no model and may be done again at any time."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction

from curation.duels.models import Duel, Verdict
from curation.duels.panel import PanelConfig, panel_config
from curation.duels.params import JudgeParams, RescoreParams
from curation.projects.settings.document import ProjectSettings
from curation.runs.kinds import Json, PlannedItem, WorkContext, Write
from curation.runs.models import Item, ItemState, Run
from curation.samples.models import Flag, Kind, flag_bits, flag_names
from curation.samples.scores.priority import priority_of
from curation.samples.scores.save import SampleRow, upsert_samples
from judging.answers.blocks import bash_blocks
from judging.panel.buckets import Thresholds, bucket_for
from judging.panel.rubric import DIMENSIONS
from judging.panel.scoring import DuelScore, OrderedVerdict, score_duel

CHUNK = 200
Reading = tuple[str, str]
LAST_TURNS = 6


@dataclass(frozen=True, slots=True)
class Scored:
    """A duel with the score that its panel gave it."""

    duel: Duel
    score: DuelScore
    bucket: str
    flags: int
    orders: tuple[str, ...]
    verdicts: tuple[OrderedVerdict, ...]
    failed: tuple[Reading, ...]

    def scoring(self, config: PanelConfig) -> Json:
        """What the score was made with, and which readings the endpoints did not give."""
        return {
            "judges": list(config.judges),
            "orders": list(self.orders),
            "min_judges": config.min_judges,
            "weights": dict(config.weights) if config.weights else None,
            "failed": [list(reading) for reading in self.failed],
        }

    def row(self) -> list[object]:
        """Id, score, bucket, flags, metrics: what the run's report shows, also when another run has scored it anew."""
        metrics = [self.score.metrics.get(dimension) for dimension in DIMENSIONS]
        return [self.duel.pk, self.score.score, self.bucket, self.flags, metrics]


class ScoreStage:
    """`duels` names the duels of the run, in ascending order."""

    name = "score"
    queue = "default"

    def __init__(self, params: JudgeParams | RescoreParams, duels: Callable[[Run], Iterator[int]]) -> None:
        self._params = params
        self._duels = duels

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        chunk: list[int] = []
        for duel_id in self._duels(run):
            chunk.append(duel_id)
            if len(chunk) == CHUNK:
                yield _planned(chunk)
                chunk = []
        if chunk:
            yield _planned(chunk)

    def work(self, context: WorkContext, item: Item) -> Write:
        run = context.run
        config = panel_config(run.settings, self._params)

        def write() -> Json:
            # Read inside the transaction: a verdict written meanwhile must not be scored away.
            scored = score_duels(run, item.data["duels"], config)
            save_scores(run, scored, config)
            return {"duels": len(scored), "rows": [entry.row() for entry in scored]}

        return write


def _planned(ids: list[int]) -> PlannedItem:
    return PlannedItem(f"{ids[0]}-{ids[-1]}", None, {"duels": ids})


def score_duels(run: Run, ids: Sequence[int], config: PanelConfig) -> list[Scored]:
    """The duels' scores by the configured panel, in the order of `ids`; nothing is written."""
    duels = Duel.objects.select_related("challenger", "prompt").in_bulk(list(ids))
    verdicts = read_verdicts(ids)
    failed = failed_readings(run, duels)
    edges = thresholds(run.settings)
    return [
        _scored(duels[duel_id], verdicts[duel_id], failed[duel_id], config, edges)
        for duel_id in ids
        if duel_id in duels
    ]


def _scored(
    duel: Duel, verdicts: list[OrderedVerdict], failed: set[Reading], config: PanelConfig, edges: Thresholds
) -> Scored:
    orders = tuple(duel.scoring.get("orders") or config.orders) if config.as_scored else config.orders
    asked = {(judge, order) for judge in config.judges for order in orders}
    # Where a reading failed, an older verdict of that judge answers another question: it is missing, too.
    counted = tuple(v for v in verdicts if (v.judge, v.order) in asked - failed)
    score = score_duel(
        counted, panel=config.judges, orders=orders, min_judges=config.min_judges, weights=config.weights
    )
    flags = _flags(duel, score, bool(failed & asked))
    bucket = bucket_for(score.score, flags=flag_names(flags), thresholds=edges)
    return Scored(duel, score, bucket, flags, orders, counted, tuple(sorted(failed)))


def read_verdicts(ids: Sequence[int]) -> dict[int, list[OrderedVerdict]]:
    found: dict[int, list[OrderedVerdict]] = defaultdict(list)
    rows = Verdict.objects.filter(duel_id__in=list(ids)).order_by("id")
    for duel_id, judge, order, parsed, dimensions in rows.values_list(
        "duel_id", "judge", "order", "parsed", "dimensions"
    ):
        found[duel_id].append(OrderedVerdict(judge, order, dimensions if parsed else None))
    return found


def thresholds(settings: ProjectSettings) -> Thresholds:
    edges = settings.thresholds
    return Thresholds(final=edges.final, refined=edges.refined)


@transaction.atomic
def save_scores(run: Run, scored: Sequence[Scored], config: PanelConfig) -> None:
    """Writes the scores to the duels and to their samples; what a person decided stays."""
    edges = thresholds(run.settings)
    # Held until the commit: an upsert would bring a duel back that is deleted meanwhile.
    rows = Duel.objects.select_for_update().filter(pk__in=[entry.duel.pk for entry in scored])
    held = set(rows.values_list("pk", flat=True))
    scored = [entry for entry in scored if entry.duel.pk in held]
    texts = _bodies([entry.duel.pk for entry in scored])
    samples = upsert_samples([_sample_row(run, entry, edges, texts[entry.duel.pk]) for entry in scored])
    for entry, sample in zip(scored, samples, strict=True):
        duel = entry.duel
        duel.run, duel.sample = run, sample
        duel.score, duel.score_key, duel.metrics = sample.score, sample.score_key, dict(entry.score.metrics)
        duel.spread, duel.bucket, duel.flags = entry.score.spread, entry.bucket, entry.flags
        duel.scoring = entry.scoring(config)
    fields = ["run", "sample", "score", "score_key", "metrics", "spread", "bucket", "flags", "scoring"]
    # An upsert on the primary key: `bulk_update` needs a CASE per row and field, six times the time of all the rest.
    Duel.objects.bulk_create(
        [entry.duel for entry in scored], update_conflicts=True, unique_fields=["id"], update_fields=fields
    )


def _sample_row(run: Run, entry: Scored, edges: Thresholds, text: tuple[str, str]) -> SampleRow:
    duel, prompt = entry.duel, entry.duel.prompt
    answer, body = text
    return SampleRow(
        project_id=run.project_id,
        run_id=run.pk,
        existing_id=duel.sample_id,
        kind=Kind.TURN,
        score=entry.score.score,
        bucket=entry.bucket,
        flags=entry.flags,
        priority=priority_of(
            score=entry.score.score,
            thresholds=edges,
            flipped=entry.score.flipped,
            spread=entry.score.spread,
            leak=bool(entry.flags & Flag.LEAK),
        ),
        source=prompt.source,
        repo=prompt.repo,
        instance_id=prompt.instance_id,
        action_style=duel.challenger.action_style,
        model=duel.challenger.model,
        preview=answer,
        body=body,
    )


def _bodies(ids: Sequence[int]) -> dict[int, tuple[str, str]]:
    """Per duel its preview (the candidate's command), and what search looks through: answers, task, last turns."""
    found = Duel.objects.filter(pk__in=list(ids)).select_related("challenger__text", "king__text", "prompt__text")
    bodies = {}
    for duel in found:
        history = duel.prompt.text.history
        shown = [m for m in history if m.get("role") != "system"]
        kept = [*shown[:1], *shown[1:][-LAST_TURNS:]]
        parts = [duel.challenger.text.text, duel.opponent_text, *(str(m.get("content") or "") for m in kept)]
        bodies[duel.pk] = (_preview(duel.challenger.text.text), "\n\n".join(parts))
    return bodies


def _preview(answer: str) -> str:
    """The command tells turns apart; an answer without one is shown from its beginning."""
    blocks = bash_blocks(answer)
    return blocks[0].script.strip() if blocks and blocks[0].script.strip() else answer


def _flags(duel: Duel, score: DuelScore, broken: bool) -> int:
    names = [
        name
        for name, holds in (("leak", duel.challenger.leak_flag), ("flip", score.flipped), ("infra", broken))
        if holds
    ]
    return flag_bits(names) | (duel.flags & Flag.INJECTION)


def failed_readings(run: Run, duels: Mapping[int, Duel]) -> dict[int, set[Reading]]:
    """By duel the (judge, order) that an endpoint did not give: nobody's verdict, unlike one that did not parse.

    A failure stays with the duel until a later run gets that reading, so that re-scoring does not forget it.
    """
    failed: dict[int, set[Reading]] = defaultdict(set)
    for pk, duel in duels.items():
        failed[pk] |= {(judge, order) for judge, order in duel.scoring.get("failed", ())}
    read = Item.objects.filter(run=run, stage="judge").values_list("target_id", "data")
    if known := [pk for pk in duels if failed[pk]]:
        made_up = read.filter(target_id__in=known, state__in=[ItemState.DONE, ItemState.SKIPPED])
        for target_id, data in made_up:
            failed[target_id or 0].discard((data["judge"], data["order"]))
    for target_id, data in read.filter(target_id__in=list(duels), state=ItemState.FAILED):
        failed[target_id or 0].add((data["judge"], data["order"]))
    return failed
