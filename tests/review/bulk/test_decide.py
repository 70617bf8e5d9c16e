import pytest
from django.test import Client

from curation.notifications.models import Notification
from curation.projects.access import Access
from curation.projects.models import AuditEntry, Project
from curation.review.bulk import decide as bulk
from curation.review.bulk.decide import decide_matching, decide_selected
from curation.review.bulk.undo import undo_bulk
from curation.review.decisions.decide import decide
from curation.review.models import Batch, Decision, Lease, Pick
from curation.review.queue.next import lease_next
from curation.samples.list.filters import SampleFilter
from curation.samples.models import Flag, Sample
from curation.web.problems import Invalid, NotFound
from tests.factories import make_project, make_sample
from tests.review.browsing import HTMX, first, url
from tests.review.rows import project_with_reviewer, reviewer_of, show_all, taken_by

pytestmark = pytest.mark.django_db


def test_a_selection_is_answered_per_row() -> None:
    access = project_with_reviewer()
    other = reviewer_of(access.project)
    free, leaking = make_sample(access.project), make_sample(access.project, flags=int(Flag.LEAK))
    done, foreign = make_sample(access.project, status="approved"), make_sample(make_project())
    held = make_sample(access.project, priority=0.0)
    lease_next(access=other)

    ids = [str(s.pk) for s in (free, leaking, done, held, foreign)] + ["nonsense"]
    result = decide_selected(access=access, action="approve", ids=ids, comment="clear cases")

    assert [row.id for row in result.rows] == ids
    assert [(row.status, bool(row.error)) for row in result.rows] == [
        ("approved", False),
        ("approved", False),
        (None, True),
        (None, True),
        (None, True),
        (None, True),
    ]
    assert other.user.username in str(result.rows[3].error)
    assert (result.changed, len(result.refused)) == (2, 4)
    leaking.refresh_from_db()
    free.refresh_from_db()
    assert leaking.leak_cleared and not free.leak_cleared
    assert (free.status, free.version, free.decided_by) == ("approved", 2, access.user)
    assert Decision.objects.filter(batch=result.batch, comment="clear cases", pick=Pick.CHALLENGER).count() == 2
    assert AuditEntry.objects.get().action == "sample.bulk_approve"
    assert Lease.objects.count() == 1, "the other reviewer keeps theirs"


def test_a_bulk_action_that_changes_nothing_leaves_no_trace() -> None:
    access = project_with_reviewer()
    other, done = reviewer_of(access.project), make_sample(access.project, status="approved")
    result = decide_selected(
        access=access, action="approve", ids=[str(done.pk)], comment=f"@{other.user.get_username()} see this"
    )
    assert (result.batch, result.changed, result.unchanged) == ("", 0, 1)
    decide_matching(access=access, action="approve", wanted=SampleFilter.from_json({"status": "rejected"}), expected=0)
    batch = decide_selected(access=access, action="reject", ids=[str(done.pk)]).batch
    taken = decide_selected(access=other, action="approve", ids=[str(done.pk)])
    assert undo_bulk(access=access, batch=batch).restored == 0
    assert {batch, taken.batch} == set(Batch.objects.values_list("key", flat=True))
    assert sorted(AuditEntry.objects.values_list("action", flat=True)) == ["sample.bulk_approve", "sample.bulk_reject"]
    assert not Notification.objects.exists()


def test_a_sample_that_is_named_twice_counts_once() -> None:
    access = project_with_reviewer()
    sample = make_sample(access.project)
    result = decide_selected(access=access, action="approve", ids=[str(sample.pk)] * 2)
    assert (result.changed, [row.status for row in result.rows]) == (1, ["approved"] * 2)
    assert AuditEntry.objects.get().data["changed"] == Batch.objects.get().changed == 1


def test_all_that_match_are_changed_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "CHUNK", 3)
    access = project_with_reviewer(blind=False)
    for _ in range(8):
        make_sample(access.project, bucket="final")
    make_sample(access.project, bucket="defeat")
    wanted = SampleFilter.from_json({"bucket": "final"})
    result = decide_matching(access=access, action="approve", wanted=wanted, expected=8)
    assert result.changed == 8 and result.rows == ()
    assert Sample.objects.filter(status="approved").count() == 8
    assert AuditEntry.objects.get().data["query"] == "bucket=final"


def test_too_many_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "MAX_MATCHING", 1)
    access = project_with_reviewer()
    samples = [make_sample(access.project) for _ in range(2)]
    with pytest.raises(Invalid, match="Narrow the filter"):
        decide_matching(access=access, action="reject", wanted=SampleFilter(), expected=2)
    with pytest.raises(Invalid, match="1 to 500"):
        decide_selected(access=access, action="reject", ids=[str(samples[0].pk)] * 501)
    with pytest.raises(Invalid, match="1 to 500"):
        decide_selected(access=access, action="reject", ids=[])
    with pytest.raises(Invalid, match="action"):
        decide_selected(access=access, action="skip", ids=[str(samples[0].pk)])
    assert not Decision.objects.exists()


def test_send_to_queue_opens_decided_samples_again() -> None:
    access = project_with_reviewer()
    sample = make_sample(access.project)
    decide(access=access, sample_id=sample.pk, action="reject")
    decide_selected(access=access, action="queue", ids=[str(sample.pk)])
    sample.refresh_from_db()
    assert (sample.status, sample.decided_by, sample.decided_at) == ("pending", None, None)
    assert taken_by(access).sample == sample


def test_one_undo_restores_each_sample_as_it_was() -> None:
    access = project_with_reviewer()
    pending, rejected = make_sample(access.project), make_sample(access.project)
    decide(access=access, sample_id=rejected.pk, action="reject")
    rejected.refresh_from_db()
    at = rejected.decided_at
    result = decide_selected(access=access, action="approve", ids=[str(pending.pk), str(rejected.pk)])

    undone = undo_bulk(access=access, batch=result.batch)

    assert (undone.restored, undone.kept) == (2, ())
    for sample in (pending, rejected):
        sample.refresh_from_db()
    assert (pending.status, pending.decided_by) == ("pending", None)
    assert (rejected.status, rejected.decided_by, rejected.decided_at) == ("rejected", access.user, at)
    lines = Decision.objects.filter(batch=result.batch)
    assert all(line.undone_by and line.undone_by.sample_id == line.sample_id for line in lines.exclude(action="undo"))
    with pytest.raises(NotFound):
        undo_bulk(access=access, batch=result.batch)


def test_what_others_did_since_stays_and_is_named() -> None:
    access = project_with_reviewer()
    other = reviewer_of(access.project)
    kept, restored = make_sample(access.project), make_sample(access.project)
    result = decide_selected(access=access, action="approve", ids=[str(kept.pk), str(restored.pk)])
    decide(access=other, sample_id=kept.pk, action="reject", version=2)

    undone = undo_bulk(access=access, batch=result.batch)

    assert undone.restored == 1
    ((pk, reason),) = undone.kept
    assert pk == kept.pk and other.user.username in reason
    kept.refresh_from_db()
    assert kept.status == "rejected"


def test_anothers_batch_is_not_found() -> None:
    access = project_with_reviewer()
    sample = make_sample(access.project)
    result = decide_selected(access=access, action="approve", ids=[str(sample.pk)])
    with pytest.raises(NotFound):
        undo_bulk(access=reviewer_of(access.project), batch=result.batch)
    with pytest.raises(NotFound):
        undo_bulk(access=access, batch="")


def test_bulk_from_the_list_gives_a_toast_with_one_undo(client: Client, me: Access, project: Project) -> None:
    samples = [make_sample(project) for _ in range(2)]
    values = {"action": "approve", "ids": [sample.pk for sample in samples]}
    response = client.post(url("sample-bulk"), values, headers=HTMX)
    assert response.status_code == 204 and "2 approved." in response["HX-Trigger"]
    undo_url = first(r'"url": "([^"]+)"', response["HX-Trigger"])
    response = client.post(undo_url, headers=HTMX)
    assert "Restored 2 samples." in response["HX-Trigger"]
    assert not Sample.objects.exclude(status="pending").exists()


def test_bulk_over_all_that_match_returns_to_the_list(client: Client, me: Access, project: Project) -> None:
    show_all(project)
    for _ in range(3):
        make_sample(project, bucket="final")
    make_sample(project, bucket="defeat")
    values = {"action": "reject", "all": "1", "query": "bucket=final&sort=-score", "count": "3"}
    response = client.post(
        url("sample-bulk"), values, headers={"Referer": "http://testserver/p/billing/samples/?bucket=final"}
    )
    assert response.status_code == 302 and response["Location"] == "/p/billing/samples/?bucket=final"
    assert Sample.objects.filter(status="rejected").count() == 3
    refused = client.post(url("sample-bulk"), {**values, "count": "9"}, headers=HTMX)
    assert refused.status_code == 409
