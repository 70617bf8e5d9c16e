"""Samples are assigned to people by shares, and the queue offers them to these people only."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from curation.assignments.models import AssignedSample, Assignment
from curation.notifications.models import Notification
from curation.projects.access import Access
from curation.projects.models import AuditEntry, Member, Project, Role
from curation.review.assignments.assign import assign
from curation.review.decisions.decide import decide
from curation.review.decisions.undo import undo
from curation.review.decisions.withdraw_assignment import withdraw_assignment
from curation.review.queue.next import Order, lease_next, open_count
from curation.samples.list.filters import SampleFilter
from curation.samples.models import Sample
from curation.web.problems import Conflict, Invalid, NotAllowed
from tests.factories import make_bearer, make_member, make_project
from tests.review.rows import judged, reviewer_of, taken_by

pytestmark = pytest.mark.django_db


@pytest.fixture
def carl(project: Project) -> Access:
    return reviewer_of(project, Role.CURATOR)


def names(*people: Access) -> list[tuple[str, float]]:
    return [(one.user.username, 1.0) for one in people]


def offered(access: Access, *, order: Order = "borderline", **wanted: str) -> list[int]:
    """Every sample that the queue offers a person, who skips none and decides none."""
    found = []
    while taken := lease_next(access=access, order=order, wanted=SampleFilter.from_json(wanted) if wanted else None):
        found.append(taken.sample.pk)
    for lease in access.user.leases.all():
        lease.delete()
    return found


def bare(project: Project, count: int, **values: Any) -> list[int]:
    rows = [Sample(project=project, priority=float(n), **values) for n in range(count)]
    return [row.pk for row in Sample.objects.bulk_create(rows)]


def test_samples_of_a_filter_go_half_to_each_in_the_order_of_the_queue(project: Project, carl: Access) -> None:
    ana, ben, eve = (reviewer_of(project) for _ in range(3))
    mine, other = bare(project, 6, repo="acme/billing"), bare(project, 2, repo="acme/web")
    done = assign(access=carl, people=names(ana, ben), wanted=SampleFilter.from_json({"repo": "acme/billing"}))
    assert done.counts == {ana.user.username: 3, ben.user.username: 3} and done.left_out == 0
    for order in ("borderline", "newest"):
        assert [offered(one, order=order)[:3] for one in (ana, ben)] == (
            [mine[0::2], mine[1::2]] if order == "borderline" else [mine[0::2][::-1], mine[1::2][::-1]]
        )
    assert sorted(offered(ana)) == sorted([*mine[0::2], *other]) and offered(eve) == other
    assert offered(ana, repo="acme/billing") == mine[0::2] and offered(eve, repo="acme/billing") == []
    assert [open_count(project, one.user.pk) for one in (ana, ben, eve)] == [5, 5, 2]
    texts = {note.user_id: note.text for note in Notification.objects.all()}
    assert texts[ana.user.pk] == f"{carl.user.username} assigned you 3 samples" and eve.user.pk not in texts
    assert AuditEntry.objects.get(action="assignment.create").data["people"] == done.counts


@pytest.mark.parametrize(
    ("weights", "count", "parts"),
    [((1, 1), 7, (4, 3)), ((70, 30), 10, (7, 3)), ((1, 1, 1), 10, (4, 3, 3)), ((0.5, 0.25, 0.25), 8, (4, 2, 2))],
)
def test_shares_are_met_to_within_one_sample_also_in_every_beginning(
    project: Project, carl: Access, weights: tuple[float, ...], count: int, parts: tuple[int, ...]
) -> None:
    people = [reviewer_of(project) for _ in weights]
    bare(project, count)
    shares = [(one.user.username, weight) for one, weight in zip(people, weights, strict=True)]
    done = assign(access=carl, people=shares, wanted=SampleFilter())
    assert tuple(done.counts.values()) == parts
    given = [row.member_id for row in AssignedSample.objects.order_by("sample__priority")]
    for person, weight in zip(people, weights, strict=True):
        member = Member.objects.get(user=person.user).pk
        for end in range(1, count + 1):
            assert abs(given[:end].count(member) - end * weight / sum(weights)) <= 1


def test_a_reserved_sample_is_for_everybody_when_it_is_shared_over_or_withdrawn(project: Project, carl: Access) -> None:
    ana, eve = reviewer_of(project), reviewer_of(project)
    (pk,) = bare(project, 1)
    done = assign(access=carl, people=names(ana), ids=[str(pk)], until=timezone.now() + timedelta(days=1))
    assert offered(eve) == [] and offered(ana) == [pk]
    Assignment.objects.update(shared=True)
    assert offered(eve) == [pk] and open_count(project, eve.user.pk) == 1
    Assignment.objects.update(shared=False, until=timezone.now() - timedelta(seconds=1))
    assert offered(eve) == [pk] == offered(ana)
    Assignment.objects.update(until=None)
    assert offered(eve) == []
    assert withdraw_assignment(access=carl, assignment=done.assignment) == 1
    assert offered(eve) == [pk] and not AssignedSample.objects.exists() and not Sample.objects.get().assigned


def test_a_person_who_leaves_or_may_no_longer_review_reserves_nothing(project: Project, carl: Access) -> None:
    ana, ben, kim, eve = (reviewer_of(project) for _ in range(4))
    samples = bare(project, 3)
    for person, pk in zip((ana, ben, kim), samples, strict=True):
        assign(access=carl, people=names(person), ids=[str(pk)])
    Member.objects.get(user=ana.user).delete()
    Member.objects.filter(user=ben.user).update(role=Role.VIEWER)
    kim.user.is_active = False
    kim.user.save()
    assert offered(eve) == list(samples)


def test_with_overlap_a_person_who_is_named_has_one_of_the_places(carl: Access) -> None:
    project = make_project(settings_json={"review": {"overlap": 2}})
    ana, ben, eve = (reviewer_of(project) for _ in range(3))
    carl = reviewer_of(project, Role.CURATOR)
    one, both = judged(project).pk, judged(project).pk
    assign(access=carl, people=names(ana), ids=[str(one)])
    assign(access=carl, people=names(ana, ben), ids=[str(both)], per_sample=2)
    assert offered(eve) == [one] and set(offered(ana)) == {one, both} and set(offered(ben)) == {one, both}
    decide(access=eve, sample_id=one, action="reject")
    assert offered(ben) == [both]  # the other place is Ana's
    decide(access=ana, sample_id=one, action="reject")
    assert Sample.objects.get(pk=one).status == "rejected"


def test_overlap_on_borderline_samples_leaves_places_only_in_those(carl: Access) -> None:
    project = make_project(settings_json={"review": {"overlap": 2, "overlap_on": "borderline"}})
    ana, eve = reviewer_of(project), reviewer_of(project)
    carl = reviewer_of(project, Role.CURATOR)
    clear, borderline, flipped = (
        judged(project, bucket="final").pk,
        judged(project, bucket="refined").pk,
        judged(project, bucket="final").pk,
    )
    Sample.objects.filter(pk=flipped).update(flags=2)
    assign(access=carl, people=names(ana), ids=[str(pk) for pk in (clear, borderline, flipped)])
    assert set(offered(eve)) == {borderline, flipped}


def test_an_undone_decision_returns_the_sample_to_whom_it_is_assigned(project: Project, carl: Access) -> None:
    ana, eve = reviewer_of(project), reviewer_of(project)
    sample = judged(project)
    assign(access=carl, people=names(ana), ids=[str(sample.pk)])
    decide(access=ana, sample_id=sample.pk, action="reject")
    undo(access=ana)
    assert offered(eve) == [] and taken_by(ana).sample.pk == sample.pk
    decide(access=ana, sample_id=sample.pk, action="skip")
    again = taken_by(ana)
    assert again.skipped_before and lease_next(access=eve) is None


def test_what_is_assigned_stays_and_the_rest_is_named(project: Project, carl: Access) -> None:
    ana, ben = reviewer_of(project), reviewer_of(project)
    bare(project, 5)
    assert assign(access=carl, people=names(ana), wanted=SampleFilter(), at_most=2).left_out == 3
    done = assign(access=carl, people=names(ben), wanted=SampleFilter())
    assert (done.counts, done.left_out) == ({ben.user.username: 3}, 2)
    with pytest.raises(Conflict, match="assigned already"):
        assign(access=carl, people=names(ben), wanted=SampleFilter())
    with pytest.raises(Conflict, match="none that is undecided"):
        assign(access=carl, people=names(ben), wanted=SampleFilter.from_json({"repo": "nowhere"}))


def test_refusals_say_what_is_wrong(project: Project, carl: Access) -> None:
    ana, viewer = reviewer_of(project), make_member(project, role=Role.VIEWER)
    bare(project, 1)
    everything = SampleFilter()
    with pytest.raises(Invalid, match="is not a reviewer of billing"):
        assign(access=carl, people=[(viewer.username, 1.0)], wanted=everything)
    with pytest.raises(Invalid, match="named twice"):
        assign(access=carl, people=names(ana, ana), wanted=everything)
    with pytest.raises(Invalid, match="More people a sample"):
        assign(access=carl, people=names(ana), wanted=everything, per_sample=2)
    with pytest.raises(Invalid, match="later than now"):
        assign(access=carl, people=names(ana), wanted=everything, until=timezone.now())
    with pytest.raises(NotAllowed):
        assign(access=ana, people=names(ana), wanted=everything)


def test_rest_assigns_lists_withdraws_and_sets_targets(client: Client, project: Project, carl: Access) -> None:
    ana, ben = reviewer_of(project), reviewer_of(project)
    bare(project, 4, repo="acme/billing")
    headers, calls = make_bearer(carl.user), "/api/v1/projects/billing"
    body = {"people": [{"username": ana.user.username, "share": 3}, {"username": ben.user.username}], "filter": {}}
    made = client.post(f"{calls}/assignments", body, "application/json", headers=headers)
    assert made.status_code == 201, made.content
    assert [(part["samples"], part["left"]) for part in made.json()["people"]] == [(3, 3), (1, 1)]
    decide(access=ben, sample_id=taken_by(ben).sample.pk, action="reject", seconds=8)
    listed = client.get(f"{calls}/assignments", headers=headers).json()["data"]
    assert [(part["username"], part["samples"], part["left"]) for part in listed[0]["people"]] == [
        (ana.user.username, 3, 3), (ben.user.username, 1, 0)
    ]  # fmt: skip
    target = f"{calls}/targets/{ben.user.username}"
    done = client.put(target, {"per_day": 10, "total": 50}, "application/json", headers=headers).json()
    assert (done["today"], done["left_today"], done["left_in_all"], done["pace"]) == (1, 9, 49, 8.0)
    assert client.put(target, {"per_day": 0}, "application/json", headers=headers).status_code == 422
    own = client.get(f"{calls}/targets", headers=make_bearer(ana.user)).json()["data"]
    assert [(row["username"], row["left"]) for row in own] == [(ana.user.username, 3)]
    assert client.delete(f"/api/v1/assignments/{made.json()['id']}", headers=headers).status_code == 204
    assert client.get(f"{calls}/assignments", headers=headers).json()["data"] == []
