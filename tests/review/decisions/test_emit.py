"""A webhook hears of every decision, also of many at once and of their undo."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from curation.projects.access import Access
from curation.projects.models import Role
from curation.review.assignments.second_opinion import ask_second_opinion
from curation.review.bulk.decide import decide_selected
from curation.review.bulk.undo import undo_bulk
from curation.review.decisions.decide import decide
from curation.review.decisions.revise import revise
from curation.review.decisions.undo import undo
from curation.samples.models import Sample
from curation.webhooks.models import Delivery, Webhook
from tests.review.rows import judged, project_with_reviewer, reviewer_of

pytestmark = pytest.mark.django_db


def listen(access: Access) -> None:
    Webhook.objects.create(project=access.project, url="https://hooks.example.org/", events=["review.decided"])


def told() -> list[tuple[Any, ...]]:
    """The webhook's events since the last look: sample, action, status, and whether it waits."""
    rows = Delivery.objects.order_by("id")
    found = [tuple(row.body["data"][name] for name in ("sample", "action", "status", "waits")) for row in rows]
    rows.delete()
    return found


def test_one_decision_its_undo_and_a_text_that_reopens() -> None:
    access = project_with_reviewer()
    listen(access)
    sample = judged(access.project)
    pk = str(sample.pk)
    decide(access=access, sample_id=sample.pk, action="approve")
    assert told() == [(pk, "approve", "approved", False)]
    revise(access=access, sample_id=sample.pk, text="better")
    assert told() == [(pk, "reopen", "pending", False)]
    undo(access=access)
    assert told() == [(pk, "undo", "approved", False)]
    undo(access=access)
    assert told() == [(pk, "undo", "pending", False)]


def test_a_bulk_decision_and_its_undo_tell_of_every_sample_in_one_insert() -> None:
    access = project_with_reviewer()
    listen(access)
    samples = [judged(access.project) for _ in range(3)]
    with CaptureQueriesContext(connection) as queries:
        done = decide_selected(access=access, action="reject", ids=[str(sample.pk) for sample in samples])
    assert len([one for one in queries if 'INSERT INTO "webhooks_delivery"' in one["sql"]]) == 1
    assert told() == [(str(sample.pk), "reject", "rejected", False) for sample in samples]
    undo_bulk(access=access, batch=done.batch)
    assert told() == [(str(sample.pk), "undo", "pending", False) for sample in samples]


def test_without_a_webhook_nobody_pays() -> None:
    access = project_with_reviewer()
    samples = [judged(access.project) for _ in range(2)]
    with CaptureQueriesContext(connection) as queries:
        decide_selected(access=access, action="reject", ids=[str(sample.pk) for sample in samples])
    asked = [one["sql"] for one in queries if "webhooks_" in one["sql"]]
    assert len(asked) == 1 and not Delivery.objects.exists()


def test_what_waits_for_others_says_so_until_it_is_settled() -> None:
    ada = project_with_reviewer(overlap=2)
    ben, carl = reviewer_of(ada.project), reviewer_of(ada.project, Role.CURATOR)
    listen(ada)
    sample = judged(ada.project)
    pk = str(sample.pk)
    first = decide(access=ada, sample_id=sample.pk, action="reject")
    decide(access=ben, sample_id=sample.pk, action="approve", preference="king")
    assert told() == [(pk, "reject", "pending", True), (pk, "approve", "pending", True)]
    decide(access=carl, sample_id=sample.pk, action="reject", keep=first.pk)
    assert told() == [(pk, "reject", "rejected", False)]
    undo(access=carl)
    undo(access=ben)
    assert told() == [(pk, "undo", "pending", False), (pk, "undo", "pending", True)]


def test_a_second_opinion_makes_the_first_decision_wait() -> None:
    access = project_with_reviewer()
    listen(access)
    sample = judged(access.project)
    decide(access=access, sample_id=sample.pk, action="reject")
    told()
    ask_second_opinion(access=access, sample_id=sample.pk)
    assert told() == [(str(sample.pk), "reject", "pending", True)]
    assert Sample.objects.get().status == "pending"
