"""A sample that somebody has open is free for others when that person may no longer review."""

import pytest

from curation.projects.members.change import change_role, remove_member
from curation.projects.models import Project, Role
from curation.review.decisions.decide import decide
from curation.review.models import Lease
from tests.factories import make_project
from tests.review.rows import judged, reviewer_of, taken_by

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("leaves", [True, False])
def test_who_leaves_or_becomes_a_viewer_gives_back_what_they_have_open(project: Project, leaves: bool) -> None:
    sample, other = judged(project), judged(make_project("other"))
    admin, ann, ben = reviewer_of(project, role=Role.ADMIN), reviewer_of(project), reviewer_of(project)
    Lease.objects.create(sample=other, reviewer=ann.user, swapped=False, until=taken_by(ann).lease.until)
    change_role(access=admin, username=ann.user.get_username(), role=Role.CURATOR)
    assert Lease.objects.filter(sample=sample).exists()

    if leaves:
        remove_member(access=admin, username=ann.user.get_username())
    else:
        change_role(access=admin, username=ann.user.get_username(), role=Role.VIEWER)

    assert taken_by(ben).sample.pk == sample.pk
    decide(access=ben, sample_id=sample.pk, action="reject")
    assert Lease.objects.get().sample_id == other.pk
