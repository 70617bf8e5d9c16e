"""Decisions that a file carries, taken over as those of the person who imports."""

from collections.abc import Mapping, Sequence

from curation.imports.row_kinds import E, ImportKind, O
from curation.imports.sources.rows import SourceError
from curation.projects.access import Access, access_of
from curation.projects.models import Scope
from curation.review.bulk.decide import decide_chunk
from curation.review.models import STATUS_AFTER, import_batch
from curation.runs.kinds import Json
from curation.runs.models import Run
from curation.web.problems import NotAllowed

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
    """Log the decisions on samples, by action and the names that the file gives; return how many approve and reject."""
    counts = {"approved": 0, "rejected": 0}
    if access is None:
        return counts
    batch = import_batch(run)
    for (action, reviewers), ids in carried.items():
        comment = f"The file names {', '.join(reviewers)}." if reviewers else ""
        decided = decide_chunk(access, action, ids, batch, f"Import {run.pk}: the decision in the file", comment)
        counts[STATUS_AFTER[action]] += sum(not row.refusal for row in decided)
    if carried:
        access.record("sample.import_decisions", batch, {**counts, "run": run.pk})
    return counts
