"""Marks of a session's steps on the review page: masks, ranges, labels, a trim, and their undo."""

import json

import pytest
from django.test import Client

from curation.projects.access import Access
from curation.projects.models import Project
from curation.review.decisions.decide import decide
from curation.review.models import Decision
from curation.samples.models import Sample, SampleStatus
from curation.trajectories.models import Trajectory, TrajectoryText
from tests.factories import called, make_imported, make_member, make_trajectory
from tests.review.browsing import HTMX, body, form, open_queue, url

pytestmark = pytest.mark.django_db


@pytest.fixture
def row(project: Project) -> Trajectory:
    """Steps 3 to 7 are the agent's."""
    return make_imported(project, *(called(f"echo {n}", f"{n}\n") for n in range(5)))


def sample_of(row: Trajectory) -> Sample:
    assert row.sample is not None
    return Sample.objects.get(pk=row.sample.pk)


def marks(row: Trajectory) -> object:
    return TrajectoryText.objects.get(trajectory=row).marks


def mark(client: Client, row: Trajectory, status: int = 200, **values: object) -> str:
    sample = sample_of(row)
    response = client.post(url("sample-marks", sample.pk), {"version": sample.version, **values}, headers=HTMX)
    assert response.status_code == status, body(response)
    if status == 200:
        assert json.loads(response["HX-Trigger"])["marked"] == {"version": sample_of(row).version}
    return body(response)


def test_a_step_is_masked_and_no_longer(client: Client, me: Access, row: Trajectory) -> None:
    shown = mark(client, row, first=4, last=4, learn="false")
    assert marks(row) == {"3": {"learn": False}} and 'id="marks-4"' in shown and "not learned" in shown
    mark(client, row, first=4, last=4, learn="true")
    assert marks(row) == {}


def test_a_range_is_masked_in_any_order(client: Client, me: Access, row: Trajectory) -> None:
    shown = mark(client, row, first=6, last=1, learn="false")
    assert marks(row) == {str(at): {"learn": False} for at in (2, 3, 4, 5)} and shown.count('hx-swap-oob="true"') == 4
    assert "is no step of the agent" in mark(client, row, 422, first=1, last=2, learn="false")


def test_a_label_is_set_changed_and_taken_away(client: Client, me: Access, row: Trajectory) -> None:
    assert 'data-labelled="wrong"' in mark(client, row, first=5, last=5, label="wrong")
    mark(client, row, first=5, last=5, label="risky")
    assert marks(row) == {"4": {"label": "risky"}}
    mark(client, row, first=5, last=5, label="")
    assert marks(row) == {}


def test_a_stale_page_marks_nothing(client: Client, me: Access, row: Trajectory) -> None:
    mark(client, row, 412, first=4, last=4, learn="false", version=9)
    assert marks(row) == {}


def test_a_sample_that_another_reviewer_has_is_not_marked(client: Client, me: Access, row: Trajectory) -> None:
    other = Client()
    other.force_login(make_member(row.project))
    open_queue(other)
    mark(client, row, 409, first=4, last=4, learn="false")
    assert marks(row) == {}


def test_marks_are_undone_one_after_the_other(client: Client, me: Access, row: Trajectory) -> None:
    mark(client, row, first=3, last=5, learn="false")
    mark(client, row, first=4, last=4, label="wrong")
    response = client.post(url("review-undo"), form(sample_of(row)), headers=HTMX)
    assert "Took back the marks of 1 step" in response["HX-Trigger"] and marks(row) == {
        str(at): {"learn": False} for at in (2, 3, 4)
    }
    client.post(url("review-undo"), form(sample_of(row)), headers=HTMX)
    assert marks(row) == {}


def test_marks_that_another_person_changed_since_are_not_undone(
    client: Client, me: Access, row: Trajectory, project: Project
) -> None:
    mark(client, row, first=4, last=4, label="wrong")
    other = Client()
    other.force_login(make_member(project))
    mark(other, row, first=4, last=4, label="risky")
    assert client.post(url("review-undo"), form(sample_of(row)), headers=HTMX).status_code == 409
    assert marks(row) == {"3": {"label": "risky"}}


def test_the_labels_of_others_are_shown_after_the_decision(
    client: Client, me: Access, row: Trajectory, project: Project
) -> None:
    other = Client()
    other.force_login(make_member(project))
    mark(other, row, first=4, last=4, label="wrong")
    mark(other, row, first=5, last=5, learn="false")
    page = body(client.post(url("sample-page", sample_of(row).pk)))
    assert 'data-labelled="wrong"' not in page and "not learned" in page
    steps = body(client.get(f"/p/billing/trajectories/{row.pk}/conversation/steps/?start=0"))
    assert 'data-labelled="wrong"' not in steps
    assert 'data-labelled="wrong"' in body(other.post(url("sample-page", sample_of(row).pk)))
    decide(access=me, sample_id=sample_of(row).pk, action="approve")
    assert 'data-labelled="wrong"' in body(client.get(url("sample-page", sample_of(row).pk)))


def test_a_trim_approves_up_to_a_step_and_its_undo_restores_the_session(
    client: Client, me: Access, row: Trajectory
) -> None:
    sample = sample_of(row)
    values = form(sample, action="approve", trim="4")
    assert client.post(url("sample-decide", sample.pk), values, headers=HTMX).status_code == 200
    assert sample_of(row).status == SampleStatus.APPROVED and marks(row) == {"4": {"end": True}}
    page = body(client.get(url("sample-page", sample.pk)))
    assert "approved up to this step" in page and page.count('data-why-not="after the end"') == 3
    client.post(url("review-undo"), form(sample), headers=HTMX)
    assert sample_of(row).status == SampleStatus.PENDING and marks(row) == {}


def test_a_rejection_does_not_trim(client: Client, me: Access, row: Trajectory) -> None:
    sample = sample_of(row)
    client.post(url("sample-decide", sample.pk), form(sample, action="reject", trim="4"), headers=HTMX)
    assert Decision.objects.get().action == "reject" and marks(row) == {}


def test_the_page_of_an_imported_run_tells_nothing_of_its_verdict(client: Client, me: Access, project: Project) -> None:
    row = make_imported(project, outcome="failed", rewards={"reward": 0.25}, reward=0.25, exception="AgentTimeout")
    make_imported(project, called("pwd", "/app"))
    TrajectoryText.objects.filter(trajectory=row).update(checker_output="2 of 3 wrong")
    page = body(client.post(url("sample-page", row.sample_id)))
    telling = ("Failed", "0.25", "AgentTimeout", "2 of 3 wrong", "terminus-2", "stub-good")
    assert [word for word in telling if word in page] == [] and "verifier and model are shown after" in page
    assert "exchange--agent" in page and "Approve to here" in page and "the terminal showed" not in page
    decide(access=me, sample_id=row.sample_id or 0, action="reject")
    page = body(client.get(url("sample-page", row.sample_id)))
    assert [word for word in telling if word not in page] == []


def test_the_other_view_and_a_sibling_replace_the_session(client: Client, me: Access, project: Project) -> None:
    row, other = make_imported(project), make_imported(project, called("pwd", "/app"))
    client.post(url("sample-page", row.sample_id))
    at = url("sample-sibling", row.sample_id)
    assert "step__command" in body(client.get(f"{at}?view=terminal"))
    assert "divergence" not in body(client.get(at))
    beside = body(client.get(f"{at}?with={other.pk}"))
    assert "First difference: step 3, another action." in beside and "This one alone" in beside


def test_a_rollouts_steps_are_marked_in_its_terminal(client: Client, me: Access, project: Project) -> None:
    row = make_trajectory(project)
    page = body(client.post(url("sample-page", row.sample_id)))
    assert 'data-marked="2"' in page and 'id="step-1"' in page
    mark(client, row, first=2, last=2, learn="false")
    assert marks(row) == {"1": {"learn": False}}
