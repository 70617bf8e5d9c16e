"""An approval names its text, and every later text sets the sample back to pending."""

import pytest
from django.test import Client

from curation.duels.models import AnswerText, Duel
from curation.review.bulk.decide import decide_selected
from curation.review.bulk.undo import undo_bulk
from curation.review.decisions.decide import decide
from curation.review.decisions.revise import revise
from curation.review.decisions.undo import undo
from curation.review.models import Action, Decision, Pick, Revision
from curation.samples.models import Flag, Sample
from curation.samples.texts import answer_sha256
from curation.trajectories.models import TrajectoryText
from tests.exports.exporting import reasons, run_export
from tests.factories import CHALLENGER, KING, make_bearer, make_trajectory
from tests.review.rows import judged, project_with_reviewer, reviewer_of

pytestmark = pytest.mark.django_db
RECIPE = {"formats": ["sft-messages"]}


def approval_of(sample: Sample) -> Decision:
    return Decision.objects.filter(sample=sample).standing_approvals().get()


def stands(sample: Sample) -> bool:
    sample.refresh_from_db()
    found = Decision.objects.filter(sample=sample).standing_approvals().exists()
    assert (sample.status == "approved") is found
    return found


def test_an_approval_names_revision_and_text() -> None:
    access = project_with_reviewer()
    recorded, king, revised = (judged(access.project) for _ in range(3))
    decide(access=access, sample_id=recorded.pk, action="approve")
    decide(access=access, sample_id=king.pk, action="approve", preference="king")
    revision = revise(access=access, sample_id=revised.pk, text="refined")
    decide(access=access, sample_id=revised.pk, action="approve")
    named = [(row.revision_id, row.text_sha256) for row in map(approval_of, (recorded, king, revised))]
    assert named == [
        (None, answer_sha256(CHALLENGER)),
        (None, answer_sha256(KING)),
        (revision.pk, answer_sha256("refined")),
    ]


def test_a_bulk_approval_names_them_too_and_a_session_by_its_turns() -> None:
    access = project_with_reviewer()
    plain, revised = judged(access.project), judged(access.project)
    revision = revise(access=access, sample_id=revised.pk, text="refined")
    trajectory = make_trajectory(access.project)
    assert trajectory.sample is not None
    rows = (plain, revised, trajectory.sample)
    decide_selected(access=access, action="approve", ids=[str(row.pk) for row in rows])
    assert [(row.revision_id, row.text_sha256) for row in map(approval_of, rows)] == [
        (None, answer_sha256(CHALLENGER)),
        (revision.pk, answer_sha256("refined")),
        (None, trajectory.text.recorded.sha256),
    ]


def test_the_hash_depends_on_text_reasoning_and_calls_and_not_on_the_order_of_keys() -> None:
    call = {"function": {"name": "ls", "arguments": "{}"}, "id": "1"}
    other = {"id": "1", "function": {"arguments": "{}", "name": "ls"}}
    hashes = [
        answer_sha256("a"),
        answer_sha256("b"),
        answer_sha256("a", reasoning="b"),
        answer_sha256("a", tool_calls=[call]),
        answer_sha256("half \ud800"),
    ]
    assert len(set(hashes)) == 5
    assert answer_sha256("a", tool_calls=[other]) == hashes[3]


@pytest.mark.parametrize("by", ["page", "rest", "code", "other side"])
def test_a_later_text_sets_the_sample_back_to_pending_and_keeps_the_approval_in_the_log(
    client: Client, by: str
) -> None:
    access = project_with_reviewer()
    sample = judged(access.project)
    revise(access=access, sample_id=sample.pk, text="first")
    decide(access=access, sample_id=sample.pk, action="approve")
    assert stands(sample)
    slug, version = access.project.slug, sample.version
    if by == "page":
        client.force_login(access.user)
        form = {"text": "second", "version": version, "preference": "challenger"}
        assert client.post(f"/p/{slug}/samples/{sample.pk}/revise/", form).status_code == 200
    elif by == "rest":
        url, headers = f"/api/v1/samples/{sample.pk}/revisions", make_bearer(access.user)
        old = client.post(url, {"text": "x", "version": version - 1}, content_type="application/json", headers=headers)
        assert old.status_code == 412 and stands(sample)
        answer = client.post(url, {"text": "second"}, content_type="application/json", headers=headers)
        assert answer.status_code == 201 and answer["ETag"].strip('W/"') == str(version + 1)
    else:
        of = Pick.KING if by == "other side" else Pick.CHALLENGER
        revise(access=access, sample_id=sample.pk, text="second", of=of)
    assert not stands(sample)
    assert (sample.status, sample.version, sample.decided_by, sample.decided_at) == ("pending", version + 1, None, None)
    approved, reopened = Decision.objects.filter(sample=sample).order_by("id")
    assert approved.revision is not None and reopened.revision is not None
    assert (approved.action, approved.revision.number, approved.undone_by) == ("approve", 1, None)
    assert (reopened.action, reopened.revision.number, reopened.reviewer) == (Action.REOPEN, 2, access.user)
    assert reasons(run_export(access.project, RECIPE)) == {str(sample.pk): "not_approved"}


def test_the_log_says_what_was_done_and_names_the_side_as_the_page_does(client: Client) -> None:
    access = project_with_reviewer()
    sample = judged(access.project)
    Duel.objects.update(king=None, opponent="reference")
    decide(access=access, sample_id=sample.pk, action="approve", preference="king")
    session = make_trajectory(access.project).sample
    assert session is not None
    decide(access=access, sample_id=session.pk, action="approve")
    client.force_login(access.user)
    for pk, words in ((sample.pk, "the answer as recorded · reference"), (session.pk, "the session as recorded")):
        page = client.get(f"/p/{access.project.slug}/samples/{pk}/").content.decode()
        assert f"<strong>{access.user.username}</strong> approved {words}" in page


def test_the_page_shows_the_earlier_approval_and_who_reopened(client: Client) -> None:
    access = project_with_reviewer()
    other = reviewer_of(access.project)
    sample = judged(access.project)
    revise(access=access, sample_id=sample.pk, text="first")
    decide(access=access, sample_id=sample.pk, action="approve")
    revise(access=other, sample_id=sample.pk, text="second")
    client.force_login(access.user)
    page = client.post(f"/p/{access.project.slug}/samples/{sample.pk}/").content.decode()
    assert f"<strong>{access.user.username}</strong> approved revision 1" in page
    assert f"<strong>{other.user.username}</strong>: revision 2 reopened it" in page
    log = client.get(f"/api/v1/samples/{sample.pk}/decisions?sort=id", headers=make_bearer(access.user)).json()["data"]
    assert [row["action"] for row in log] == ["approve", "reopen"]
    assert log[0]["text_sha256"] == answer_sha256("first") and log[1]["text_sha256"] is None


def test_a_text_of_an_undecided_sample_reopens_nothing() -> None:
    access = project_with_reviewer()
    sample = judged(access.project)
    decide(access=access, sample_id=sample.pk, action="refine")
    revise(access=access, sample_id=sample.pk, text="first")
    assert list(Decision.objects.values_list("action", flat=True)) == ["refine"]
    assert Sample.objects.get(pk=sample.pk).status == "needs_refine"


def test_undo_takes_the_later_text_back_before_it_brings_back_an_approval() -> None:
    access = project_with_reviewer()
    sample = judged(access.project)
    decide(access=access, sample_id=sample.pk, action="approve")
    decide(access=access, sample_id=sample.pk, action="reject")
    revise(access=access, sample_id=sample.pk, text="later")
    undo(access=access)
    assert not stands(sample) and sample.status == "rejected"
    undo(access=access)
    assert stands(sample) and sample.status == "approved"
    undo(access=access)
    assert not stands(sample) and sample.status == "pending"


def test_undo_restores_an_approval_of_the_same_text_exactly() -> None:
    access = project_with_reviewer()
    sample = judged(access.project, flags=Flag.LEAK)
    decide(access=access, sample_id=sample.pk, action="approve")
    before = Sample.objects.filter(pk=sample.pk).values("status", "decided_by", "decided_at", "leak_cleared").get()
    named = approval_of(sample)
    decide(access=access, sample_id=sample.pk, action="reject")
    assert not stands(sample)
    undo(access=access)
    assert stands(sample) and approval_of(sample) == named
    assert Sample.objects.filter(pk=sample.pk).values(*before).get() == before
    assert reasons(run_export(access.project, RECIPE)) == {}


def test_bulk_undo_does_not_bring_back_an_approval_of_an_earlier_text_either() -> None:
    access = project_with_reviewer()
    same, revised = judged(access.project), judged(access.project)
    for sample in (same, revised):
        decide(access=access, sample_id=sample.pk, action="approve")
    done = decide_selected(access=access, action="queue", ids=[str(same.pk), str(revised.pk)])
    revise(access=access, sample_id=revised.pk, text="later")
    assert undo_bulk(access=access, batch=done.batch).restored == 2
    assert stands(same) and not stands(revised)


@pytest.mark.parametrize("change", ["answer", "revision", "newer revision", "command", "output", "status"])
def test_an_export_leaves_out_a_text_that_was_changed_by_hand(change: str) -> None:
    access = project_with_reviewer()
    if change in ("command", "output"):
        trajectory = make_trajectory(access.project)
        assert trajectory.sample is not None
        sample = trajectory.sample
    else:
        sample = judged(access.project)
    if change == "revision":
        revise(access=access, sample_id=sample.pk, text="first")
    if change != "status":
        decide(access=access, sample_id=sample.pk, action="approve")
        assert reasons(run_export(access.project, RECIPE)) == {}
    if change == "answer":
        AnswerText.objects.filter(answer__duels_as_challenger__sample=sample).update(text="other")
    elif change == "revision":
        Revision.objects.filter(sample=sample).update(text="other")
    elif change == "newer revision":
        Revision.objects.create(sample=sample, author=access.user, number=1, text="other")
    elif change == "status":
        Sample.objects.filter(pk=sample.pk).update(status="approved")
    else:
        row = TrajectoryText.objects.get(trajectory__sample=sample)
        command = row.steps[1]
        if change == "command":
            command["message"] = "rm -rf /"
        else:
            command["observation"]["results"][0]["content"] = "rm -rf /"
        row.save()
    expected = "not_approved" if change == "status" else "not_as_approved"
    assert reasons(run_export(access.project, RECIPE)) == {str(sample.pk): expected}
