"""A mention in a decision that waits for others reaches its person when the sample is settled, and not before."""

import pytest

from curation.notifications.models import Notification
from curation.projects.access import Access
from curation.projects.models import Project, Role
from curation.review.bulk.decide import decide_selected
from curation.review.decisions.decide import decide
from curation.review.decisions.undo import undo
from tests.factories import make_project
from tests.review.rows import judged, reviewer_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return make_project("billing", settings_json={"review": {"overlap": 2}})


def told(access: Access) -> list[str]:
    return [note.text for note in Notification.objects.filter(user=access.user).order_by("id")]


@pytest.mark.parametrize("in_bulk", [False, True])
def test_it_arrives_when_the_second_person_agrees_and_only_once(project: Project, in_bulk: bool) -> None:
    ana, ben, dan = (reviewer_of(project) for _ in range(3))
    sample = judged(project)
    decide(access=ana, sample_id=sample.pk, action="reject", comment=f"@{dan.user.username} look at line 3")
    assert told(dan) == []
    if in_bulk:
        decide_selected(access=ben, action="reject", ids=[str(sample.pk)])
    else:
        decide(access=ben, sample_id=sample.pk, action="reject")
        undo(access=ben)
        decide(access=ben, sample_id=sample.pk, action="reject")
    assert told(dan) == [f"{ana.user.username} mentioned you on sample {sample.pk}"]


def test_it_arrives_when_a_curator_adjudicates_and_never_if_it_was_undone(project: Project) -> None:
    ana, ben, dan = (reviewer_of(project) for _ in range(3))
    carl = reviewer_of(project, Role.CURATOR)
    sample, other = judged(project), judged(project)
    for pk in (sample.pk, other.pk):
        decide(access=ana, sample_id=pk, action="reject", comment=f"@{dan.user.username}")
        decide(access=ben, sample_id=pk, action="approve")
    assert told(dan) == []
    undo(access=ana, sample_id=other.pk)
    decide(access=ana, sample_id=other.pk, action="approve")
    decide(access=carl, sample_id=sample.pk, action="reject")
    assert told(dan) == [f"{ana.user.username} mentioned you on sample {sample.pk}"]


def test_sending_a_sample_back_tells_nobody(project: Project) -> None:
    ana, dan, carl = reviewer_of(project), reviewer_of(project), reviewer_of(project, Role.CURATOR)
    sample = judged(project)
    decide(access=ana, sample_id=sample.pk, action="reject", comment=f"@{dan.user.username}")
    decide_selected(access=carl, action="queue", ids=[str(sample.pk)])
    assert told(dan) == []
