"""Previous and next: back through one's own decisions while reviewing a queue, else through the project's samples."""

from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from curation.projects.access import Access
from curation.review.models import Action, Decision
from curation.samples.models import Sample


@dataclass(frozen=True, slots=True)
class Trail:
    """Addresses, empty where there is nothing that way."""

    previous: str
    next: str


def queue_url(slug: str, query: str) -> str:
    return reverse("queue", args=[slug]) + (f"?{query}" if query else "")


def sample_url(slug: str, pk: int) -> str:
    return reverse("sample-page", args=[slug, pk])


def queue_trail(access: Access, *, sample_id: int, at: int | None, query: str) -> Trail:
    """`at` is the decision that is looked back at; None stands at the head of the queue."""
    own = Decision.objects.filter(reviewer=access.user, sample__project=access.project, batch="")
    own = own.exclude(action=Action.UNDO).exclude(sample_id=sample_id)
    older = own.filter(id__lt=at) if at else own
    back = older.order_by("-id").values_list("id", "sample_id").first()
    newer = own.filter(id__gt=at).order_by("id").values_list("id", "sample_id").first() if at else None
    slug = access.project.slug
    return Trail(
        _looking_back(slug, *back, query) if back else "",
        _looking_back(slug, *newer, query) if newer else (queue_url(slug, query) if at else ""),
    )


def list_trail(access: Access, sample_id: int) -> Trail:
    rows = Sample.objects.of(access.project)
    before = rows.filter(id__lt=sample_id).order_by("-id").values_list("id", flat=True).first()
    after = rows.filter(id__gt=sample_id).order_by("id").values_list("id", flat=True).first()
    slug = access.project.slug
    return Trail(*(reverse("sample-page", args=[slug, pk]) if pk else "" for pk in (before, after)))


def _looking_back(slug: str, decision_id: int, sample_id: int, query: str) -> str:
    given = urlencode({"queue": query, "at": decision_id})
    return f"{reverse('sample-page', args=[slug, sample_id])}?{given}"
