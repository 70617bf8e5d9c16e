"""The key `z` goes back through everything that a person did on the pages of review, in the order of time."""

import json

import pytest
from django.test import Client
from django.urls import reverse

from curation.assignments.models import Assignment
from curation.labels.models import Label, LabelValue, Question
from curation.projects.access import Access
from curation.projects.models import AuditEntry, Project
from curation.review.assignments.second_opinion import ask_second_opinion
from curation.review.decisions.decide import decide
from curation.review.decisions.findings import clear, findings_of
from curation.review.flags import resolve_flags
from curation.review.labels.save import save_labels
from curation.review.models import Clearance, FlagResolution
from curation.samples.models import Sample
from tests.factories import CHALLENGER
from tests.review.browsing import HTMX
from tests.review.rows import judged, reviewer_of

pytestmark = pytest.mark.django_db


def undo_once(client: Client, **sent: object) -> tuple[str, str]:
    """The page's message, and the page."""
    done = client.post(reverse("review-undo", args=["billing"]), sent, headers=HTMX)
    assert done.status_code == 200, done.content
    said = json.loads(done["HX-Trigger"])["say"]["text"]
    return said, done.content.decode()


def answers(access: Access, sample: Sample) -> list[object]:
    own = Label.objects.filter(sample=sample, author=access.user, current=True, value__isnull=False)
    return list(own.values_list("value", flat=True))


def test_z_takes_each_step_back_the_last_first(client: Client, me: Access, project: Project) -> None:
    Question.objects.create(project=project, name="error", title="Error?", choices=["a", "b"])
    decided, labelled, found, flagged, asked = (
        judged(project, challenger=f"{CHALLENGER}\nAsk ada@acme-corp.io.") for _ in range(5)
    )
    ann = reviewer_of(project)
    decide(access=ann, sample_id=flagged.pk, action="flag", reason="cut")
    decide(access=me, sample_id=decided.pk, action="reject")
    for answer in ("a", "b"):
        save_labels(access=me, sample_id=labelled.pk, given={"error": answer})
    email = findings_of(found)[0]
    clear(access=me, sample_id=found.pk, rule=email.rule, value_sha256=email.value_sha256, reason="A made-up address.")
    resolve_flags(access=me, sample_id=flagged.pk, note="Looked at it.")
    ask_second_opinion(access=me, sample_id=asked.pk, username=ann.user.username)
    page = client.post(reverse("queue", args=["billing"]), headers=HTMX).content.decode()
    assert f"Sample {asked.pk}: asked for a second opinion</a> · <kbd>z</kbd>" in page

    said, page = undo_once(client, queue="")
    assert said == f"Withdrew the request for a second opinion on sample {asked.pk}."
    assert f'data-sample="{asked.pk}"' in page and f"Sample {flagged.pk}: resolved its flags" in page
    assert not Assignment.objects.exists() and Sample.objects.get(pk=asked.pk).opinions == 0

    said, page = undo_once(client)
    assert said == f"Opened the flags again of sample {flagged.pk}."
    assert not FlagResolution.objects.exists() and "Flagged by" in page
    assert AuditEntry.objects.get(action="sample.reopen_flags").subject == str(flagged.pk)

    said, page = undo_once(client)
    assert said == f"Took back the clearance of email in sample {found.pk}."
    assert not Clearance.objects.exists() and f'data-sample="{found.pk}"' in page

    said, _ = undo_once(client)
    assert said == f"Took back your answer to “Error?” about sample {labelled.pk}."
    assert answers(me, labelled) == ["a"]
    assert list(LabelValue.objects.filter(sample=labelled).values_list("value", flat=True)) == ["a"]
    undo_once(client)
    assert answers(me, labelled) == [] and not LabelValue.objects.exists()

    said, page = undo_once(client)
    assert said == f"Undid reject of sample {decided.pk}." and f'data-sample="{decided.pk}"' in page
    assert Sample.objects.get(pk=decided.pk).status == "pending"
    refused = client.post(reverse("review-undo", args=["billing"]), headers=HTMX)
    assert refused.status_code == 409


def test_an_answer_that_is_given_again_after_an_undo_is_the_last_step(
    client: Client, me: Access, project: Project
) -> None:
    Question.objects.create(project=project, name="error", title="Error?", choices=["a", "b"])
    sample = judged(project)
    for answer in ("a", "b", None):
        save_labels(access=me, sample_id=sample.pk, given={"error": answer})
    seen = [answers(me, sample)]
    for _ in range(2):
        undo_once(client)
        seen.append(answers(me, sample))
    save_labels(access=me, sample_id=sample.pk, given={"error": "b"})
    seen.append(answers(me, sample))
    for _ in range(2):
        undo_once(client)
        seen.append(answers(me, sample))
    assert seen == [[], ["b"], ["a"], ["b"], ["a"], []]


def test_a_label_of_a_decided_sample_is_undone_there_and_the_decision_stays(
    client: Client, me: Access, project: Project
) -> None:
    Question.objects.create(project=project, name="error", title="Error?", choices=["a"])
    sample = judged(project)
    decide(access=me, sample_id=sample.pk, action="reject")
    save_labels(access=me, sample_id=sample.pk, given={"error": "a"})
    _, page = undo_once(client, queue="", sample=sample.pk)
    assert f'data-sample="{sample.pk}"' in page and answers(me, sample) == []
    assert Sample.objects.get(pk=sample.pk).status == "rejected"


def test_nobody_undoes_the_steps_of_others_or_of_another_project(client: Client, me: Access, project: Project) -> None:
    Question.objects.create(project=project, name="error", title="Error?", choices=["a"])
    ann = reviewer_of(project)
    sample = judged(project)
    save_labels(access=ann, sample_id=sample.pk, given={"error": "a"})
    ask_second_opinion(access=ann, sample_id=sample.pk)
    assert client.post(reverse("review-undo", args=["billing"]), headers=HTMX).status_code == 409
    assert answers(ann, sample) == ["a"] and Assignment.objects.exists()
