"""The samples that are grouped, and their texts."""

from collections.abc import Sequence

from django.db.models import F, Q
from django.db.models.functions import Right

from curation.exports.hygiene.embed import MOST_TASKS, EmbeddedTasks
from curation.predictions.models import Cluster
from curation.projects.models import Project
from curation.review.models import DECIDING, Decision
from curation.samples.models import Sample, SampleQuerySet, SampleStatus
from curation.trajectories.models import KEPT, NEVER_NEGATIVE
from curation.web.ids import IdList

# The newest samples of each kind, characters from the end of a text, and reviewed samples before others can be new.
MOST, READ, FEWEST_REVIEWED = 5_000, 2_000, 20


def failures(project: Project) -> SampleQuerySet:
    """Rejected samples, those to refine, and trajectories that failed by the model's own doing."""
    failed = Q(trajectory__isnull=False) & ~Q(trajectory__outcome__in=(*KEPT, *NEVER_NEGATIVE))
    turned_down = Q(status__in=(SampleStatus.REJECTED, SampleStatus.NEEDS_REFINE))
    found: SampleQuerySet = Sample.objects.of(project).filter(turned_down | failed & ~Q(status=SampleStatus.APPROVED))
    return found


def pending(project: Project) -> SampleQuerySet:
    return Sample.objects.of(project).filter(status=SampleStatus.PENDING)


def reviewed(project: Project) -> SampleQuerySet:
    return Sample.objects.of(project).exclude(status=SampleStatus.PENDING)


def refusal(project: Project, of: str) -> str:
    """Return why there is nothing to group, as a sentence; "" if there is something."""
    if of == Cluster.Of.FAILURES:
        if failures(project).exists():
            return ""
        return "There is nothing to group: no sample is rejected or to be refined, and no trajectory has failed."
    if not pending(project).exists():
        return "There is nothing to group: no sample is pending."
    known = reviewed(project)[:FEWEST_REVIEWED].count()
    if known >= FEWEST_REVIEWED:
        return ""
    return (
        f"What is new can be told once {FEWEST_REVIEWED} samples are reviewed. Reviewed so far: {known}. Until then, "
        "all pending samples are new."
    )


def texts(project: Project, of: str) -> tuple[dict[int, str], dict[int, str]]:
    """Return the texts to group by their samples, and those among which a new one is no longer new."""
    if of == Cluster.Of.FAILURES:
        return texts_of(failures(project)), {}
    return texts_of(pending(project)), texts_of(reviewed(project))


def tasks_of(project: Project, of: str) -> EmbeddedTasks:
    """Return the texts to embed."""
    both = dict.fromkeys(text for part in texts(project, of) for text in part.values())
    return EmbeddedTasks(frozenset(list(both)[:MOST_TASKS]), frozenset(), max(0, len(both) - MOST_TASKS))


def texts_of(rows: SampleQuerySet) -> dict[int, str]:
    """Return, by sample, its reasons and comments, how its trajectory failed, and the end of its text."""
    columns = ("pk", "trajectory__outcome", "trajectory__exception", "trajectory__panic_reason", "end")
    found = rows.annotate(end=Right(F("text__body"), READ)).order_by("-id").values_list(*columns)[:MOST]
    read = list(found)
    said = _texts([row[0] for row in read])
    return {pk: " ".join(filter(None, (said.get(pk), *words))) for pk, *words in read}


def _texts(ids: Sequence[int]) -> dict[int, str]:
    rows = Decision.objects.standing(*DECIDING).filter(sample__in=IdList(ids))
    return {
        pk: f"{reason} {comment}".strip() for pk, reason, comment in rows.values_list("sample_id", "reason", "comment")
    }
