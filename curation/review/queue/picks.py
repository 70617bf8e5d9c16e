"""What `left` and `right` of the page mean: the seats that the page showed, or a conflict, never a guess."""

from django.http import QueryDict

from curation.projects.access import Access
from curation.review.models import Lease
from curation.review.queue.seats import resolve_pick
from curation.samples.models import Sample, Status
from curation.web.problems import Conflict


def seats_shown(values: QueryDict, access: Access, sample: Sample) -> bool:
    """Whether the page had the challenger on the left.

    While blind the form names the lease whose seats it showed. Another lease, even of the same person, has drawn its
    own seats: then the pick would be of the wrong answer, so it is refused.
    """
    if not access.project.settings.review.blind or sample.status != Status.PENDING:
        return False
    given = values.get("lease", "")
    lease = Lease.objects.filter(sample=sample, reviewer=access.user).first()
    if lease is None or str(lease.pk) != given:
        raise Conflict(
            "Your lease had lapsed and the seats were drawn again. Look again and decide.", code="lease_lost"
        )
    return lease.swapped


def pick_of_page(values: QueryDict, access: Access, sample: Sample) -> str:
    """candidate, opponent, draw, or "" where nothing is picked."""
    given = values.get("preference", "")
    if given not in ("left", "right"):
        return resolve_pick(given, swapped=None)
    return resolve_pick(given, swapped=seats_shown(values, access, sample))


def preference_of_page(values: QueryDict, access: Access, sample: Sample) -> str:
    """The preference as `decide` takes it: left and right as said while their lease stands, else by what they meant."""
    given = values.get("preference", "")
    if given not in ("left", "right"):
        return given
    pick = pick_of_page(values, access, sample)
    return given if Lease.objects.filter(sample=sample, reviewer=access.user).exists() else pick
