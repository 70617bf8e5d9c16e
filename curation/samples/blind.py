"""What stays hidden of pending samples from those who decide them, and who looked. Every page and call asks here.

In a project with blind review a *reviewer* finds score, bucket, flags, verdicts, outcome and sides of a pending sample
nowhere but on its own page after the decision. Curators and admins see them, and the audit log says once per sample
that they looked. The rules:

- one object that tells of a sample: `look`, or `hides` where only a part is hidden;
- a list of them: `without_pending` for reviewers, and `look_at` for what curators see;
- a figure or a file of many samples: `refuse_pending`, or a count of decided samples where `reviews_blind`;
- a filter or an order: `refuse_hidden` of samples, `refuse_told` of anything else;
- a run's result, items and calls: `results_hidden`.
"""

from collections.abc import Iterable
from typing import Any, TypeVar

from django.db import models, transaction
from django.db.models import Exists, OuterRef

from curation.projects import audit
from curation.projects.access import Access
from curation.projects.models import Role
from curation.runs.pages.results import hides_results
from curation.samples.list.filters import SampleFilter
from curation.samples.models import SCANNED, Look, Sample, Status, flag_bits
from curation.web.lists.id_list import IdList
from curation.web.problems import FieldError, NotAllowed

R = TypeVar("R", bound="models.QuerySet[Any]")
# The fields of a samples filter that tell nothing hidden; a new field counts as hidden until it is listed here. Flags
# are told apart below.
OPEN_FIELDS = frozenset(
    {
        "status",
        "kind",
        "model",
        "source",
        "repo",
        "instance_id",
        "reviewer",
        "run",
        "opponent",
        "axes",
        "text",
        "flags",
        "label",
        "similar",
    }
    | {"created_after", "created_before"}
)
# What tells how people decided who do not see each other's decisions.
OF_CURATORS = ("disputed", "decided_by", "independent")
OPEN_SORTS = ("-id", "id", "-created_at", "created_at")


def reviews_blind(access: Access) -> bool:
    return access.role == Role.REVIEWER and access.project.settings.review.blind


def hides(access: Access, sample: Sample) -> bool:
    return sample.status == Status.PENDING and reviews_blind(access)


def shown_flags(sample: Sample, *, hidden: bool) -> int:
    """The bits of the flags that may be listed: of a hidden sample what the scan of its texts found."""
    return sample.flags & SCANNED if hidden else sample.flags


def refuse_hidden(access: Access, wanted: SampleFilter) -> None:
    """Refuse a filter or an order that tells what is hidden. One that matches no pending sample is not refused."""
    told = [name for name in OF_CURATORS if getattr(wanted, name) not in ((), None)]
    if told and access.role not in (Role.CURATOR, Role.ADMIN):
        raise NotAllowed(
            f"{', '.join(told)} would tell what others decided before their sample is settled. Curators and admins may "
            "use it.",
            code="blind",
            errors=[FieldError(name, "hidden while samples are pending") for name in told],
        )
    if not reviews_blind(access) or any(Status.PENDING not in group for group in wanted.status):
        return
    named = [
        name
        for name in SampleFilter.model_fields
        if name not in OPEN_FIELDS and getattr(wanted, name) not in ((), None, "")
    ]
    if any(flag_bits(group) & ~SCANNED for group in wanted.flags):
        named.append("flags")
    if getattr(wanted, "sort", None) not in (None, *OPEN_SORTS):
        named.append("sort")
    if named:
        raise NotAllowed(
            f"You review blind: {', '.join(named)} would tell what is hidden of pending samples. Leave it out, or "
            "filter by a status without `pending`.",
            code="blind",
            errors=[FieldError(name, "hidden while samples are pending") for name in named],
        )


def without_pending(access: Access, rows: R, *paths: str) -> R:
    """The rows, for someone who reviews blind without those of pending samples; `paths` are lookups of the sample."""
    if reviews_blind(access):
        for path in paths:
            rows = rows.exclude(**{f"{path}__status": Status.PENDING})
    return rows


def refuse_told(access: Access, *names: str) -> None:
    """Refuse parameters by which a list tells how samples ended, while one of the project is hidden from the caller."""
    if names and has_hidden(access):
        raise NotAllowed(
            f"You review blind: {', '.join(names)} would tell what is hidden of pending samples. Leave it out.",
            code="blind",
            errors=[FieldError(name, "hidden while samples are pending") for name in names],
        )


def refuse_pending(access: Access, samples: "models.QuerySet[Sample]", what: str) -> None:
    """Refuse a reviewer something that tells of these samples while one of them is pending."""
    if reviews_blind(access) and samples.filter(status=Status.PENDING).exists():
        raise NotAllowed(
            f"You review blind, and {what} tells of samples that are pending. It opens when they are decided.",
            code="blind",
        )


@hides_results
def results_hidden(access: Access) -> str:
    """Runs tell how samples ended and were judged, and their calls how long each answer is."""
    if not has_hidden(access):
        return ""
    return "You review blind, and samples of the project are pending. What runs found is shown when all are decided."


def has_hidden(access: Access) -> bool:
    """Whether anything of the project is hidden from the caller."""
    return reviews_blind(access) and Sample.objects.of(access.project).filter(status=Status.PENDING).exists()


def look(access: Access, sample: Sample | None) -> None:
    """Refuse a reviewer to look at what is hidden of this sample; note that a curator or admin looked."""
    if sample is None or sample.status != Status.PENDING:
        return
    if reviews_blind(access):
        raise NotAllowed(
            f"You review blind, and sample {sample.pk} is pending. This opens when it is decided.", code="blind"
        )
    look_at(access, [sample.pk])


def look_at(access: Access, ids: Iterable[int | None]) -> None:
    """Note that a curator or admin sees what is hidden of the pending ones of these samples: a row for each that they
    had not seen, and one entry in the audit log. A list that shows no new one costs one query."""
    shown = [pk for pk in ids if pk is not None]
    if not shown or access.role not in (Role.CURATOR, Role.ADMIN):
        return
    seen = Sample.objects.filter(pk__in=IdList(shown), status=Status.PENDING)
    if not access.project.settings.review.blind:
        seen = seen.filter(opinions__gt=0)
    known = Look.objects.filter(sample=OuterRef("pk"), user=access.user)
    new = list(seen.exclude(Exists(known)).order_by("pk").only("pk"))
    if not new:
        return
    with transaction.atomic():
        Look.objects.bulk_create([Look(sample=sample, user=access.user) for sample in new], ignore_conflicts=True)
        audit.record(
            actor=access.user,
            action="sample.look",
            subject=str(new[0].pk) if len(new) == 1 else f"{len(new)} samples",
            project=access.project,
            data={"samples": [str(sample.pk) for sample in new]} if len(new) > 1 else None,
        )
