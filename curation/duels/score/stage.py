"""Stage `score`: verdicts become a score, a bucket and a sample. It calls no model and can be repeated at any time."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from django.db import transaction

from curation.duels.models import Duel, Verdict
from curation.duels.params import JudgeParams, Panel, RescoreParams, panel_of
from curation.projects.settings.document import ProjectSettings
from curation.runs.kinds import Json, PlannedItem, WorkContext, Write
from curation.runs.models import Item, ItemState, Run
from curation.samples.models import LEAKS, Flag, Kind, flag_bits, flag_names
from curation.samples.scores.priority import priority_of
from curation.samples.scores.save import SampleRow, upsert_samples
from judging.answers.blocks import bash_blocks
from judging.messages import content_of
from judging.panel.buckets import Thresholds, bucket_for
from judging.panel.rubric import DIMENSIONS
from judging.panel.scoring import DuelScore, OrderedVerdict, score_duel
from judging.scan.scan import texts_of

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

    def scoring(self, panel: Panel) -> Json:
        """Return what the score was made with, and which readings failed."""
        return {
            "judges": list(panel.judges),
            "orders": list(self.orders),
            "min_judges": panel.min_judges,
            "weights": dict(panel.weights) if panel.weights else None,
            "failed": [list(reading) for reading in self.failed],
        }

    def row(self) -> list[object]:
        """Return what the run's report shows, even after another run has scored the duel again."""
        metrics = [self.score.metrics.get(dimension) for dimension in DIMENSIONS]
        return [self.duel.pk, self.score.score, self.bucket, self.flags, metrics]


class ScoreStage:
    """`duels` returns the ids of the run's duels in ascending order."""

    name = "score"
    queue = "default"

    def __init__(self, params: JudgeParams | RescoreParams, duels: Callable[[Run], Iterator[int]]) -> None:
        self._params = params
        self._duels = duels

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        duels = self._duels(run)
        while ids := list(islice(duels, CHUNK)):
            yield PlannedItem(f"{ids[0]}-{ids[-1]}", None, {"duels": ids})

    def work(self, context: WorkContext, item: Item) -> Write:
        run = context.run
        panel = panel_of(run.settings, self._params)

        def write() -> Json:
            # Read inside the transaction, so that the newest verdicts count.
            scored = score_duels(run, item.data["duels"], panel)
            save_scores(run, scored, panel)
            return {"duels": len(scored), "rows": [entry.row() for entry in scored]}

        return write


def score_duels(run: Run, ids: Sequence[int], panel: Panel) -> list[Scored]:
    """Return the duels' scores by the panel, in the order of `ids`. Nothing is written."""
    duels = Duel.objects.select_related("challenger", "king", "prompt").in_bulk(list(ids))
    verdicts = _verdicts(ids)
    failed = _failed_readings(run, duels)
    limits = _thresholds(run.settings)
    return [
        _scored(duels[duel_id], verdicts[duel_id], failed[duel_id], panel, limits)
        for duel_id in ids
        if duel_id in duels
    ]


def _scored(
    duel: Duel, verdicts: list[OrderedVerdict], failed: set[Reading], panel: Panel, thresholds: Thresholds
) -> Scored:
    orders = tuple(duel.scoring.get("orders") or panel.orders) if panel.as_scored else panel.orders
    asked = {(judge, order) for judge in panel.judges for order in orders}
    # If a reading failed, an older verdict of that judge does not replace it.
    counted = tuple(v for v in verdicts if (v.judge, v.order) in asked - failed)
    score = score_duel(counted, panel=panel.judges, orders=orders, min_judges=panel.min_judges, weights=panel.weights)
    flags = _flags(duel, score, bool(failed & asked))
    bucket = bucket_for(score.score, flags=flag_names(flags), thresholds=thresholds)
    return Scored(duel, score, bucket, flags, orders, counted, tuple(sorted(failed)))


def _verdicts(ids: Sequence[int]) -> dict[int, list[OrderedVerdict]]:
    found: dict[int, list[OrderedVerdict]] = defaultdict(list)
    rows = Verdict.objects.filter(duel_id__in=list(ids)).order_by("id")
    columns = ("duel_id", "judge", "order", "parsed", "dimensions", "attempts")
    for duel_id, judge, order, parsed, dimensions, attempts in rows.values_list(*columns):
        found[duel_id].append(OrderedVerdict(judge, order, dimensions if parsed else None, attempts))
    return found


def _thresholds(settings: ProjectSettings) -> Thresholds:
    return Thresholds(final=settings.thresholds.final, refined=settings.thresholds.refined)


@transaction.atomic
def save_scores(run: Run, scored: Sequence[Scored], panel: Panel) -> None:
    """Save the scores of the duels and their samples. People's decisions stay."""
    limits = _thresholds(run.settings)
    # Locked until the commit, because the upsert below would recreate a duel that is deleted meanwhile.
    rows = Duel.objects.select_for_update().filter(pk__in=[entry.duel.pk for entry in scored])
    existing = set(rows.values_list("pk", flat=True))
    scored = [entry for entry in scored if entry.duel.pk in existing]
    texts = sample_texts([entry.duel.pk for entry in scored])
    samples = upsert_samples([_sample_row(run, entry, limits, texts[entry.duel.pk]) for entry in scored])
    for entry, sample in zip(scored, samples, strict=True):
        duel = entry.duel
        duel.run, duel.sample = run, sample
        duel.score, duel.score_key, duel.metrics = sample.score, sample.score_key, dict(entry.score.metrics)
        duel.spread, duel.bucket, duel.flags = entry.score.spread, entry.bucket, entry.flags
        duel.scoring = entry.scoring(panel)
    fields = ["run", "sample", "score", "score_key", "metrics", "spread", "bucket", "flags", "scoring"]
    # An upsert on the primary key: `bulk_update` needs a CASE per row and field, six times the time of all the rest.
    Duel.objects.bulk_create(
        [entry.duel for entry in scored], update_conflicts=True, unique_fields=["id"], update_fields=fields
    )


def _sample_row(run: Run, entry: Scored, thresholds: Thresholds, text: "SampleTexts") -> SampleRow:
    duel, prompt = entry.duel, entry.duel.prompt
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
            thresholds=thresholds,
            flipped=entry.score.flipped,
            spread=entry.score.spread,
            leak=bool(entry.flags & LEAKS),
        ),
        source=prompt.source,
        repo=prompt.repo,
        instance_id=prompt.instance_id,
        action_style=duel.challenger.action_style,
        model=duel.challenger.model,
        preview=text.preview,
        body=text.body,
        texts=text.scanned,
    )


class SampleTexts(NamedTuple):
    """The preview, the text for search (answers, task, last turns), and all texts for the scan."""

    preview: str
    body: str
    scanned: tuple[str, ...]


def sample_texts(ids: Sequence[int]) -> dict[int, SampleTexts]:
    found = Duel.objects.filter(pk__in=list(ids)).select_related("challenger__text", "king__text", "prompt__text")
    texts = {}
    for duel in found:
        history = duel.prompt.text.history
        turns = [message for message in history if message.get("role") != "system"]
        searched = [*turns[:1], *turns[1:][-LAST_TURNS:]]
        answers = (duel.challenger.text.text, duel.opponent_text)
        parts = [*answers, *map(content_of, searched)]
        scanned = (*texts_of([history, duel.prompt.text.tools]), *answers)
        texts[duel.pk] = SampleTexts(_preview(duel.challenger.text.text), "\n\n".join(parts), scanned)
    return texts


def _preview(answer: str) -> str:
    """Return the answer's command, or the answer itself if it has none."""
    blocks = bash_blocks(answer)
    return blocks[0].script.strip() if blocks and blocks[0].script.strip() else answer


def _flags(duel: Duel, score: DuelScore, failed: bool) -> int:
    answer = duel.challenger
    found = {"leak": answer.leak_flag, "leak_reader": answer.reader_flag, "flip": score.flipped, "infra": failed}
    return flag_bits([name for name, is_set in found.items() if is_set]) | (duel.flags & Flag.INJECTION)


def _failed_readings(run: Run, duels: Mapping[int, Duel]) -> dict[int, set[Reading]]:
    """Return by duel the (judge, order) of failed calls, unlike replies that did not parse.

    A failure stays with the duel until a later run gets that reading, so that a rescore keeps it.
    """
    failed: dict[int, set[Reading]] = defaultdict(set)
    for pk, duel in duels.items():
        failed[pk] |= {(judge, order) for judge, order in duel.scoring.get("failed", ())}
    read = Item.objects.filter(run=run, stage="judge").values_list("target_id", "data")
    if known := [pk for pk in duels if failed[pk]]:
        succeeded = read.filter(target_id__in=known, state__in=[ItemState.DONE, ItemState.SKIPPED])
        for target_id, data in succeeded:
            failed[target_id or 0].discard((data["judge"], data["order"]))
    for target_id, data in read.filter(target_id__in=list(duels), state=ItemState.FAILED):
        failed[target_id or 0].add((data["judge"], data["order"]))
    return failed
