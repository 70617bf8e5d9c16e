"""The decisions and scores that files carry. Decisions are taken over as those of the person who imports.

`score/NAME.json` of an archive belongs to the duel in `answer/NAME.json`. The files of an archive come in any order, so
a score that comes before its duel waits in the import's memory.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath

from curation.duels.models import Duel
from curation.imports.layouts.clean import clean
from curation.imports.row_kinds import E, ImportKind, ImportTarget, O
from curation.imports.sources.rows import RowRefused, SourceError, SourceRow
from curation.projects.access import Access, access_of
from curation.projects.models import Scope
from curation.projects.settings.document import ProjectSettings
from curation.review.bulk.decide import decide_chunk
from curation.review.imports.content import read_metrics, read_reason, read_score
from curation.review.models import STATUS_AFTER, import_batch
from curation.runs.kinds import Json
from curation.runs.models import Run
from curation.samples.models import Sample, flag_names
from curation.samples.scores import priority_of
from curation.web.problems import NotAllowed
from judging.panel.scoring import Thresholds, bucket_for

Carried = Mapping[tuple[str, tuple[str, ...]], list[int]]


class DecidingKind(ImportKind[O, E]):
    """A kind whose option `decisions` makes those in the file decisions of the person who imports."""

    def scopes(self, options: Json) -> Sequence[Scope]:
        return [Scope.REVIEW] if options.get("decisions") else []

    def begin(self, run: Run) -> Json:
        check_launch(run)
        return {}


def decides(run: Run) -> bool:
    return bool(run.params.get("options", {}).get("decisions"))


def check_launch(run: Run) -> None:
    """Raise `NotAllowed` for an import that takes decisions over for a person without the right to review."""
    if decides(run) and person_of(run) is None:
        raise NotAllowed("To take over the decisions of a file, you need the right to review in this project.")


def person_of(run: Run) -> Access | None:
    """The person who launched the import, if they may review now."""
    access = access_of(run.created_by, run.project) if run.created_by is not None else None
    return access if access is not None and access.may(Scope.REVIEW) else None


def deciding_person(run: Run) -> Access | None:
    """The person whose decisions the file's are; None for an import that takes none over. Raises `SourceError`."""
    if not decides(run):
        return None
    access = person_of(run)
    if access is None:
        raise SourceError("The person who imports may no longer review in this project.")
    return access


def take_over(run: Run, access: Access | None, carried: Carried) -> dict[str, int]:
    """Log the decisions on samples, by action and the names that the file gives; return how many approve and reject,
    and how many are refused, such as an approval without the answer to a required question."""
    counts = {"approved": 0, "rejected": 0}
    if access is None:
        return counts
    batch = import_batch(run)
    for (action, reviewers), ids in carried.items():
        comment = f"The file names {', '.join(reviewers)}." if reviewers else ""
        decided = decide_chunk(access, action, ids, batch, f"Import {run.pk}: the decision in the file", comment)
        accepted = sum(not row.error for row in decided)
        counts[STATUS_AFTER[action]] += accepted
        if accepted < len(decided):
            counts["refused"] = counts.get("refused", 0) + len(decided) - accepted
    if carried:
        access.record("sample.import_decisions", batch, {**counts, "run": run.pk})
    return counts


LAYOUT = "scores of duels (score, metrics)"
FOLDER = "score"
_APART = "Import each folder of answers with its scores as an archive of its own."


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """The score of the duel in the file of that name, 0–100, with those of its dimensions."""

    file: str
    score: float
    metrics: dict[str, float]
    reason: str


def read_score_row(row: SourceRow) -> ScoreRow | None:
    """Return the score in a file of the folder `score`, None for another row. Raises `RowRefused`."""
    path = PurePosixPath(row.file)
    if path.parent.name != FOLDER or "messages" in row.value:
        return None
    if path.stem.startswith("_"):
        raise RowRefused(f"{row.file} is about a whole run, and only scores of single duels are imported")
    value, _ = clean(row.value, "")
    score = read_score(value.get("score"))
    if score is None:
        raise RowRefused(f"{row.file} has no score")
    return ScoreRow(path.stem, score, read_metrics(value), read_reason(value))


def write_scores(target: ImportTarget, rows: Sequence[ScoreRow], files: Iterable[str]) -> dict[str, int]:
    """Give the scores to the duels that this import has written, and return how many. The others wait.

    `files` are those of the duels that were just written. Raises `SourceError` if a score fits two duels.
    """
    waiting = dict(target.memory.get("scores", {}))
    for row in rows:
        if row.file in waiting:
            raise SourceError(f"The archive has two scores with the name {row.file}. {_APART}")
        waiting[row.file] = asdict(row)
    given = target.memory.get("scores_given", False)
    if not waiting and not given:
        return {}
    named = sorted({*waiting, *(filter(None, files) if given else ())})
    duels = list(Duel.objects.filter(run=target.run, scoring__imported__file__in=named).select_related("sample"))
    for file, count in Counter(duel.scoring["imported"]["file"] for duel in duels).items():
        if count > 1:
            raise SourceError(f"{count} duels are in files with the name {file}, and its score fits one. {_APART}")
    scored = [
        _scored(duel, ScoreRow(**waiting.pop(file)), target)
        for duel in duels
        if (file := duel.scoring["imported"]["file"]) in waiting
    ]
    Duel.objects.bulk_update(scored, ["score", "score_key", "metrics", "bucket", "scoring"], batch_size=250)
    samples = [duel.sample for duel in scored if duel.sample is not None]
    Sample.objects.bulk_update(samples, ["score", "score_key", "bucket", "priority"], batch_size=250)
    target.memory |= {"scores": waiting, "scores_given": given or bool(scored)}
    target.notes["scores_without_duel"] = len(waiting)
    return {"scores": len(scored)}


def _scored(duel: Duel, row: ScoreRow, target: ImportTarget) -> Duel:
    duel.score = duel.score_key = row.score
    duel.metrics, duel.bucket = row.metrics, imported_bucket(duel, target.run.settings)
    imported = duel.scoring["imported"]
    if imported.get("scored"):
        raise SourceError(f"The archive has two scores with the name {row.file}. {_APART}")
    duel.scoring = {**duel.scoring, "imported": {**imported, "reason": row.reason, "scored": True}}
    if duel.sample is not None:
        duel.sample.score, duel.sample.score_key, duel.sample.bucket = duel.score, duel.score_key, duel.bucket
        duel.sample.priority = imported_priority(duel, target.run.settings)
    return duel


def imported_bucket(duel: Duel, settings: ProjectSettings) -> str:
    """Return the bucket of an imported score by this project's thresholds. Without a score there is none: that is no
    score that failed."""
    if duel.score is None:
        return ""
    return bucket_for(duel.score, flags=flag_names(duel.flags), thresholds=_thresholds(settings))


def imported_priority(duel: Duel, settings: ProjectSettings) -> float:
    leak = bool(duel.flags)
    return priority_of(score=duel.score, thresholds=_thresholds(settings), flipped=False, spread=0.0, held=leak)


def _thresholds(settings: ProjectSettings) -> Thresholds:
    return Thresholds(final=settings.thresholds.final, refined=settings.thresholds.refined)
