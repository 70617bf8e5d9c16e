"""Facts of pending samples that stay hidden from their reviewers, and the log of who looked. Every page and call asks
here.

In a project with blind review a *reviewer* finds score, bucket, flags, verdicts, outcome and sides of a pending sample
nowhere but on its own page after the decision. Curators and admins see them, and the audit log says once per sample
that they looked. The rules:

- one object that tells of a sample: `unblind`, or `hides` where only a part is hidden;
- a list of them: `without_pending` for reviewers (of duels and verdicts `curation.duels.pages.queries`), and
  `record_unblinding` for the rows that curators see;
- a figure or a file of many samples: `refuse_pending`, or a count of decided samples where `reviews_blind`;
- a page of all samples: `refuse_undecided`, and `closed_to=has_hidden`;
- a filter or an order: `refuse_hidden` of samples, `refuse_outcome_params` of anything else;
- a run's result, items and calls: `results_hidden`.

A page does not offer links that it would refuse: a view names its rule (`project_page`), and `opens` asks it before a
link is shown; the samples list shows those fields and orders that are `offered`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import Any, TypeVar

from django.db import models, transaction
from django.http import QueryDict

from curation.projects.access import Access
from curation.projects.models import Role
from curation.runs.pages.results import hides_results
from curation.samples.list.filters import SampleFilter, SampleList
from curation.samples.models import SCANNED, Flag, Sample, SampleStatus, Unblinding
from curation.web.database.queries import Prepared
from curation.web.ids import IdList
from curation.web.lists.filters import NOT_GIVEN, Groups
from curation.web.problems import Blind, FieldError

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
        "guarantee",
        "similar",
    }
    | {"created_after", "created_before"}
)
# Fields that reveal decisions of people who do not see each other's decisions.
OF_CURATORS = ("disputed", "decided_by", "independent")
OPEN_SORTS = ("-id", "id", "-created_at", "created_at")
# Every list of samples asks.
_unblindings = Prepared(
    lambda ids, user: Unblinding.objects.filter(sample_id__in=IdList(ids), user=user).values_list("sample_id"),
    ids=list,
    user=int,
)


def reviews_blind(access: Access) -> bool:
    return access.role == Role.REVIEWER and access.project.settings.review.blind


def hides(access: Access, sample: Sample) -> bool:
    return sample.status == SampleStatus.PENDING and reviews_blind(access)


@dataclass(frozen=True, slots=True)
class OfferedFilters:
    """What a person may filter and order samples of a status by: all fields but the `hidden` ones, these flags, and
    these orders."""

    hidden: frozenset[str]
    flags: frozenset[str]
    sorts: tuple[str, ...]


_ALL_FIELDS, _ALL_SORTS = frozenset(SampleFilter.model_fields), tuple(SampleList.sorts)
_ALL_FLAGS = frozenset(flag.label for flag in Flag)
_OF_ADJUDICATORS = OfferedFilters(frozenset(), _ALL_FLAGS, _ALL_SORTS)
_OF_REVIEWERS = OfferedFilters(frozenset(OF_CURATORS), _ALL_FLAGS, _ALL_SORTS)
_BLIND = OfferedFilters(
    _ALL_FIELDS - OPEN_FIELDS | frozenset(OF_CURATORS),
    frozenset(flag.label for flag in Flag if flag & SCANNED),
    OPEN_SORTS,
)


def offered(access: Access, status: Groups) -> OfferedFilters:
    """`status` is that of the filter: with one that leaves pending samples out, a blind reviewer may ask for more."""
    if access.role in (Role.CURATOR, Role.ADMIN):
        return _OF_ADJUDICATORS
    finds_pending = all(SampleStatus.PENDING in group for group in status)
    return _BLIND if finds_pending and reviews_blind(access) else _OF_REVIEWERS


def refuse_hidden(access: Access, wanted: SampleFilter) -> None:
    """Refuse a filter or an order that reveals hidden facts. One that matches no pending sample is not refused."""
    shown = offered(access, wanted.status)
    named = [name for name in sorted(shown.hidden) if getattr(wanted, name) not in NOT_GIVEN]
    if told := [name for name in named if name in OF_CURATORS]:
        raise Blind(
            f"{', '.join(told)} would reveal decisions of others before their sample is settled. Curators and admins "
            "may use it.",
            errors=[FieldError(name, "hidden while samples are pending") for name in told],
        )
    if not shown.flags.issuperset(chain.from_iterable(wanted.flags)):
        named.append("flags")
    sort = getattr(wanted, "sort", None)
    if sort in _ALL_SORTS and sort not in shown.sorts:
        named.append("sort")
    if named:
        raise Blind(
            f"You review blind: {', '.join(named)} would reveal hidden facts of pending samples. Leave it out, or "
            "filter by a status without `pending`.",
            errors=[FieldError(name, "hidden while samples are pending") for name in named],
        )


def refuse_hidden_query(access: Access, query: QueryDict) -> None:
    """`refuse_hidden` of the query of a link to the samples list."""
    refuse_hidden(access, SampleList.from_query(query))


def without_pending(access: Access, rows: R, *paths: str) -> R:
    """The rows, for a blind reviewer without those of pending samples; `paths` are lookups of the sample."""
    if reviews_blind(access):
        for path in paths:
            rows = rows.exclude(**{f"{path}__status": SampleStatus.PENDING})
    return rows


def refuse_outcome_params(access: Access, *names: str) -> None:
    """Refuse parameters by which a list tells how samples ended, while one of the project is hidden from the caller."""
    if names and has_hidden(access):
        raise Blind(
            f"You review blind: {', '.join(names)} would reveal hidden facts of pending samples. Leave it out.",
            errors=[FieldError(name, "hidden while samples are pending") for name in names],
        )


def refuse_pending(access: Access, samples: "models.QuerySet[Sample]", what: str) -> None:
    """Refuse a reviewer something that tells of these samples while one of them is pending."""
    if hides_any(access, samples):
        raise Blind(f"You review blind, and {what} tells of samples that are pending. It opens when they are decided.")


def hides_any(access: Access, samples: "models.QuerySet[Sample]") -> bool:
    return reviews_blind(access) and samples.filter(status=SampleStatus.PENDING).exists()


def refuse_undecided(access: Access) -> None:
    """Refuse a reviewer a page that tells of all samples of the project while one of them is pending."""
    refuse_pending(access, Sample.objects.of(access.project), "this page")


@hides_results
def results_hidden(access: Access) -> str:
    """Runs tell how samples ended and were judged, and their calls how long each answer is."""
    if not has_hidden(access):
        return ""
    return "You review blind, and samples of the project are pending. Results of runs are shown when all are decided."


def has_hidden(access: Access) -> bool:
    """Whether anything of the project is hidden from the caller."""
    # Every page asks this of its links, and a query takes longer to build.
    return reviews_blind(access) and hides_any(access, Sample.objects.of(access.project))


def unblind(access: Access, sample: Sample | None) -> None:
    """Refuse a reviewer the hidden facts of this sample; note that a curator or admin looked."""
    if sample is None or sample.status != SampleStatus.PENDING:
        return
    if reviews_blind(access):
        raise Blind(f"You review blind, and sample {sample.pk} is pending. This opens when it is decided.")
    record_unblinding(access, [sample.pk])


def record_unblinding(access: Access, ids: Iterable[int | None]) -> None:
    """Note that a curator or admin sees the hidden facts of the pending ones of these samples: a row for each that is
    new to them, and one entry in the audit log."""
    shown = [pk for pk in ids if pk is not None]
    if shown and access.role in (Role.CURATOR, Role.ADMIN):
        # By the ids alone: with a condition on the status a database may read every pending sample of the project.
        record_unblinding_of(access, Sample.objects.filter(pk__in=IdList(shown)).only("pk", "status", "opinions"))


def record_unblinding_of(access: Access, shown: Iterable[Sample]) -> None:
    """`record_unblinding` of samples that are read already."""
    if access.role not in (Role.CURATOR, Role.ADMIN):
        return
    blind = access.project.settings.review.blind
    pending = [sample for sample in shown if sample.status == SampleStatus.PENDING and (blind or sample.opinions)]
    if not pending:
        return
    known = {pk for (pk,) in _unblindings.all(ids=[sample.pk for sample in pending], user=access.user.pk)}
    new = sorted((sample for sample in pending if sample.pk not in known), key=attrgetter("pk"))
    if not new:
        return
    with transaction.atomic():
        Unblinding.objects.bulk_create(
            [Unblinding(sample=sample, user=access.user) for sample in new], ignore_conflicts=True
        )
        pks = [str(sample.pk) for sample in new]
        if len(pks) == 1:
            access.record("sample.look", pks[0])
        else:
            access.record("sample.look", f"{len(pks)} samples", {"samples": pks})
