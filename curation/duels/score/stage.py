"""Stage `score`: verdicts become scores of the run, and samples. It calls no model and can be repeated at any time."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from django.db import transaction

from curation.duels.models import READ, Duel
from curation.duels.params import JudgeParams, Panel, RescoreParams, panel_of
from curation.duels.score.counting import OF_VERDICTS, copy_scores
from curation.duels.score.facts import DuelFacts, duel_facts
from curation.duels.score.models import Score, ScorePanel
from curation.duels.score.panels import dimensions_of, make_panel, saved_panels
from curation.duels.score.readings import DuelReadings, Reading, readings_of, verdicts_with
from curation.projects.models import Project
from curation.runs.kinds import Json, PlannedItem, WorkContext, Write
from curation.runs.models import Item, Run
from curation.samples.models import UNSCORED, Flag, SampleKind, flag_names
from curation.samples.scores import UNPARSED_PRIORITY, SampleRow, upsert_samples
from curation.web.ids import IdList
from judging.messages import bash_blocks, content_of
from judging.panel.rubric import complete
from judging.panel.scoring import DuelScore, OrderedVerdict, Thresholds, bucket_for
from judging.scan.scan import texts_of

CHUNK = 200
# A rescore reads no texts, as a rule.
RESCORED = 1000
TEXTS_AT_ONCE = 200
LAST_TURNS = 6
COPIED = ("score", "score_key", "metrics", "spread", "bucket", "flags")


# As plain numbers: on an enumeration each operation costs more than a score.
_LEAK, _READ, _UNREAD, _FLIP, _INFRA, _INJECTION = (
    flag.value for flag in (Flag.LEAK, Flag.LEAK_READER, Flag.LEAK_UNREAD, Flag.FLIP, Flag.INFRA, Flag.INJECTION)
)


@dataclass(frozen=True, slots=True)
class ScoredDuel:
    duel: DuelFacts
    score: DuelScore
    bucket: str
    flags: int
    panel: ScorePanel
    verdicts: tuple[OrderedVerdict, ...]
    verdict_ids: tuple[int, ...]
    failed: tuple[Reading, ...]


class ScoreStage:
    """`duels` returns the ids of the run's duels in ascending order."""

    name = "score"
    queue = "default"

    def __init__(self, params: JudgeParams | RescoreParams, duels: Callable[[Run], Iterator[int]]) -> None:
        self._params = params
        self._duels = duels

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        duels = self._duels(run)
        most = RESCORED if isinstance(self._params, RescoreParams) else CHUNK
        while ids := list(islice(duels, most)):
            yield PlannedItem(f"{ids[0]}-{ids[-1]}", None, {"duels": ids})

    def work(self, context: WorkContext, item: Item) -> Write:
        run = context.run
        panel = panel_of(run.settings, self._params)

        def write() -> Json:
            # Read inside the transaction that saves them.
            scored = self.score(run, item.data["duels"], panel)
            save_scores(run, scored)
            return {"duels": len(scored)}

        return write

    def score(self, run: Run, ids: Sequence[int], panel: Panel) -> list[ScoredDuel]:
        return score_duels(run, ids, panel, self._params)


def score_duels(run: Run, ids: Sequence[int], panel: Panel, params: JudgeParams | RescoreParams) -> list[ScoredDuel]:
    """Return the duels' scores by the panel, in the order of `ids`. Nothing is written."""
    panel = replace(panel, weights=complete(panel.weights, dimensions_of(run)))
    duels = duel_facts(ids)
    found = readings_of(run, list(duels), panel, params)
    limits = Thresholds(final=run.settings.thresholds.final, refined=run.settings.thresholds.refined)
    known: dict[tuple[object, ...], ScorePanel] = {}
    return [_scored(duels[duel_id], found[duel_id], panel, limits, known) for duel_id in ids if duel_id in duels]


def _scored(
    duel: DuelFacts,
    found: DuelReadings,
    panel: Panel,
    thresholds: Thresholds,
    known: dict[tuple[object, ...], ScorePanel],
) -> ScoredDuel:
    """`known` are the panels that earlier duels had, since nearly all have the same."""
    asked = {(judge, order) for judge in panel.judges for order in found.orders}
    answered = asked - found.failed
    counted = [row for row in found.verdicts if (row.judge, row.order) in answered]
    verdicts = tuple(row.ordered() for row in counted)
    fingerprints = found.fingerprints(panel.judges)
    key = (*fingerprints.values(), found.orders)
    if (made_by := known.get(key)) is None:
        made_by = known[key] = make_panel(
            fingerprints=fingerprints, orders=found.orders, min_judges=panel.min_judges, weights=panel.weights
        )
    score = made_by.score(verdicts)
    flags = _flags(duel, score, bool(found.failed & asked))
    bucket = bucket_for(score.score, flags=_names(flags), thresholds=thresholds)
    ids = tuple(row.pk for row in counted)
    return ScoredDuel(duel, score, bucket, flags, made_by, verdicts, ids, tuple(sorted(found.failed & asked)))


@lru_cache
def _names(flags: int) -> frozenset[str]:
    return frozenset(flag_names(flags))


def read_scores(run: Run, ids: Sequence[int]) -> list[ScoredDuel]:
    """Return the scores that the run's stage `score` saved for these duels, with the scores by judge."""
    columns = ("duel_id", "panel_id", "bucket", "flags", "verdicts", "failed")
    rows = list(Score.objects.filter(run=run, duel__in=IdList(ids)).order_by("duel_id").values_list(*columns))
    panels = ScorePanel.objects.in_bulk({panel for _, panel, *_ in rows})
    duels = duel_facts([duel for duel, *_ in rows])
    verdicts = verdicts_with([pk for *_, made, _ in rows for pk in made])
    found = []
    for duel, panel, bucket, flags, made, failed in rows:
        if duel in duels:
            read = tuple(verdicts[pk].ordered() for pk in made if pk in verdicts)
            score = panels[panel].score(read)
            lost = tuple((judge, order) for judge, order in failed)
            found.append(ScoredDuel(duels[duel], score, bucket, flags, panels[panel], read, tuple(made), lost))
    return found


@transaction.atomic
def save_scores(run: Run, scored: Sequence[ScoredDuel]) -> None:
    """Save the run's scores, create missing samples, and copy the scores that count. People's decisions stay."""
    # Locked first, as a change of the settings does: it moves the same rows.
    project = Project.objects.select_for_update(no_key=True).get(pk=run.project_id)
    # Locked until the commit, because the insert below would fail for a duel that is deleted meanwhile.
    ids = IdList([entry.duel.pk for entry in scored])
    rows = Duel.objects.select_for_update().filter(pk__in=ids).order_by("pk")
    existing = dict(rows.values_list("pk", "sample_id"))
    scored = [entry for entry in scored if entry.duel.pk in existing]
    panels = saved_panels(run.project_id, [entry.panel for entry in scored])
    Score.objects.bulk_create(
        [
            Score(
                duel_id=entry.duel.pk,
                run=run,
                panel=panels[entry.panel.digest],
                score=entry.score.score,
                score_key=UNSCORED if entry.score.score is None else entry.score.score,
                metrics=dict(entry.score.metrics),
                spread=entry.score.spread,
                bucket=entry.bucket,
                flags=entry.flags,
                verdicts=list(entry.verdict_ids),
                failed=[list(reading) for reading in entry.failed],
            )
            for entry in scored
        ],
        update_conflicts=True,
        unique_fields=["duel", "run"],
        update_fields=[*COPIED, "panel", "verdicts", "failed", "scored_at"],
    )
    new = [entry for entry in scored if existing[entry.duel.pk] is None]
    for start in range(0, len(new), TEXTS_AT_ONCE):
        _create_samples(run, new[start : start + TEXTS_AT_ONCE])
    copy_scores(project, list(existing))


def _create_samples(run: Run, scored: Sequence[ScoredDuel]) -> None:
    """Create the samples of duels that have none, without a score: that is copied if its panel counts."""
    ids = [entry.duel.pk for entry in scored]
    duels, texts = Duel.objects.select_related("challenger", "prompt").in_bulk(ids), sample_texts(ids)
    rows = [_sample_row(run, duels[entry.duel.pk], entry.flags, texts[entry.duel.pk]) for entry in scored]
    for entry, sample in zip(scored, upsert_samples(rows), strict=True):
        duel = duels[entry.duel.pk]
        duel.run_id = duel.run_id or run.pk
        duel.sample, duel.flags = sample, entry.flags & ~OF_VERDICTS
    Duel.objects.bulk_update(duels.values(), ["run", "sample", "flags"])


def _sample_row(run: Run, duel: Duel, flags: int, text: "SampleTexts") -> SampleRow:
    prompt = duel.prompt
    return SampleRow(
        project_id=run.project_id,
        run_id=run.pk,
        existing_id=None,
        kind=SampleKind.TURN,
        score=None,
        bucket="",
        flags=flags & ~OF_VERDICTS,
        priority=UNPARSED_PRIORITY,
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
    texts = {}
    # In parts: SQLite takes no more than 1,000 sessions in one prefetch.
    for duel in Duel.objects.filter(pk__in=list(ids)).with_histories().iterator(500):
        history = duel.prompt.text.history
        turns = [message for message in history if message.get("role") != "system"]
        searched = [*turns[:1], *turns[1:][-LAST_TURNS:]]
        answers = (duel.challenger.text.text, duel.opponent_text)
        # In an order that does not depend on the sides: a phrase across the two answers would find which is first.
        parts = [*sorted(answers), *map(content_of, searched)]
        scanned = (*texts_of([history, duel.prompt.text.tools]), *answers)
        texts[duel.pk] = SampleTexts(_preview(duel.challenger.text.text), "\n\n".join(parts), scanned)
    return texts


def _preview(answer: str) -> str:
    """Return the answer's command, or the answer itself if it has none."""
    blocks = bash_blocks(answer)
    return blocks[0].script.strip() if blocks and blocks[0].script.strip() else answer


def _flags(duel: DuelFacts, score: DuelScore, failed: bool) -> int:
    return (
        (_LEAK if duel.leak else 0)
        | (_READ if duel.read else 0)
        | (_UNREAD if duel.reading not in (None, READ) and not duel.leak else 0)
        | (_FLIP if score.flipped else 0)
        | (_INFRA if failed else 0)
        | (duel.flags & _INJECTION)
    )
