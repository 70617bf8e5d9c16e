"""Stage `score`: verdicts become a score, a bucket and a sample. It asks no model and may be done again at any time."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.db import transaction

from curation.duels.config import PanelConfig, panel_config
from curation.duels.models import Duel, Verdict
from curation.duels.params import JudgeParams, RescoreParams
from curation.projects.models import Project
from curation.runs.drive_sync import WorkContext
from curation.runs.kinds import Json, PlannedItem, Write
from curation.runs.models import Item, ItemState, Run
from curation.samples.models import Flag, Kind, flag_bits, flag_names
from curation.samples.priority import priority_of
from curation.samples.record import SampleRow, upsert_samples
from judging.scoring import DuelScore, OrderedVerdict, Thresholds, bucket_for, score_duel

CHUNK = 200
LAST_TURNS = 6


@dataclass(frozen=True, slots=True)
class Scored:
    """A duel with the score that its panel gave it."""

    duel: Duel
    score: DuelScore
    bucket: str
    flags: int


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
        config = panel_config(run.project, self._params)

        def write() -> Json:
            # Read inside the transaction: a verdict written meanwhile must not be scored away.
            scored = score_duels(run, item.data["duels"], config)
            save_scores(run, scored, config)
            return {"duels": len(scored)}

        return write


def _planned(ids: list[int]) -> PlannedItem:
    return PlannedItem(f"{ids[0]}-{ids[-1]}", None, {"duels": ids})


def score_duels(run: Run, ids: Sequence[int], config: PanelConfig) -> list[Scored]:
    """The duels' scores by the configured panel, in the order of `ids`; nothing is written."""
    duels = Duel.objects.select_related("challenger", "prompt").in_bulk(list(ids))
    verdicts = read_verdicts(ids)
    broken = _broken_by_infrastructure(run, ids)
    edges = thresholds(run.project)
    scored = []
    for duel_id in ids:
        if (duel := duels.get(duel_id)) is None:
            continue
        score = score_duel(
            verdicts[duel_id],
            panel=config.judges,
            orders=config.orders,
            min_judges=config.min_judges,
            weights=config.weights,
        )
        flags = _flags(duel, score, duel_id in broken)
        bucket = bucket_for(score.score, flags=flag_names(flags), thresholds=edges)
        scored.append(Scored(duel, score, bucket, flags))
    return scored


def read_verdicts(ids: Sequence[int]) -> dict[int, list[OrderedVerdict]]:
    found: dict[int, list[OrderedVerdict]] = defaultdict(list)
    rows = Verdict.objects.filter(duel_id__in=list(ids)).order_by("id")
    for duel_id, judge, order, parsed, dimensions in rows.values_list(
        "duel_id", "judge", "order", "parsed", "dimensions"
    ):
        found[duel_id].append(OrderedVerdict(judge, order, dimensions if parsed else None))
    return found


def thresholds(project: Project) -> Thresholds:
    edges = project.settings.thresholds
    return Thresholds(final=edges.final, refined=edges.refined)


@transaction.atomic
def save_scores(run: Run, scored: Sequence[Scored], config: PanelConfig) -> None:
    """Writes the scores to the duels and to their samples; what a person decided stays."""
    edges = thresholds(run.project)
    texts = _bodies([entry.duel.pk for entry in scored])
    samples = upsert_samples([_sample_row(run, entry, edges, texts[entry.duel.pk]) for entry in scored])
    scoring = {
        "judges": list(config.judges),
        "orders": list(config.orders),
        "min_judges": config.min_judges,
        "weights": dict(config.weights) if config.weights else None,
    }
    for entry, sample in zip(scored, samples, strict=True):
        duel = entry.duel
        duel.run, duel.sample = run, sample
        duel.score, duel.metrics = entry.score.score, dict(entry.score.metrics)
        duel.spread, duel.bucket, duel.flags, duel.scoring = entry.score.spread, entry.bucket, entry.flags, scoring
    fields = ["run", "sample", "score", "metrics", "spread", "bucket", "flags", "scoring"]
    Duel.objects.bulk_update([entry.duel for entry in scored], fields, batch_size=100)


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
    """Per duel the candidate's text, and what search looks through: both answers, the task and the last turns."""
    found = Duel.objects.filter(pk__in=list(ids)).select_related("challenger__text", "king__text", "prompt__text")
    bodies = {}
    for duel in found:
        history = duel.prompt.text.history
        shown = [m for m in history if m.get("role") != "system"]
        kept = [*shown[:1], *shown[1:][-LAST_TURNS:]]
        king = duel.king.text.text if duel.king else str(duel.prompt.text.reference.get("content") or "")
        parts = [duel.challenger.text.text, king, *(str(m.get("content") or "") for m in kept)]
        bodies[duel.pk] = (duel.challenger.text.text, "\n\n".join(parts))
    return bodies


def _flags(duel: Duel, score: DuelScore, broken: bool) -> int:
    names = [
        name
        for name, holds in (("leak", duel.challenger.leak_flag), ("flip", score.flipped), ("infra", broken))
        if holds
    ]
    return flag_bits(names) | (duel.flags & Flag.INJECTION)


def _broken_by_infrastructure(run: Run, ids: Sequence[int]) -> set[int]:
    """Duels of which a reading failed for the endpoint's sake: what is missing there is nobody's verdict."""
    failed = Item.objects.filter(run=run, stage="judge", state=ItemState.FAILED, target_id__in=list(ids))
    return {target for target in failed.values_list("target_id", flat=True) if target is not None}
