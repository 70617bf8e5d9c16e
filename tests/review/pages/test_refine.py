import pytest
from django.test import Client

from curation.projects.access import Access
from curation.projects.models import Project
from curation.review.models import Decision, Draft, Lease, Pick, Revision
from curation.samples.models import Sample
from tests.factories import CHALLENGER
from tests.review.browsing import HTMX, body, form, open_queue, url
from tests.review.rows import judged

pytestmark = pytest.mark.django_db


def test_saving_a_refinement_approves_it_and_goes_on(client: Client, me: Access, project: Project) -> None:
    first, second = judged(project, priority=1.0), judged(project, priority=2.0)
    open_queue(client)
    Lease.objects.update(swapped=True)
    values = form(
        first,
        text="THOUGHT: better.\r\n\r\n```bash\r\nls\r\n```",
        note="n",
        then="approve",
        preference="left",
        queue="",
    )
    response = client.post(url("sample-revise", first.pk), values, headers=HTMX)
    assert response.status_code == 200 and f"Sample {second.pk}" in body(response)
    revision = Revision.objects.get()
    assert (revision.of, revision.text) == (Pick.CHALLENGER, "THOUGHT: better.\n\n```bash\nls\n```")
    assert Decision.objects.get().revision == revision


def test_an_empty_refinement_is_refused_and_nothing_is_decided(client: Client, me: Access, project: Project) -> None:
    sample = judged(project)
    open_queue(client)
    response = client.post(url("sample-revise", sample.pk), form(sample, text=" ", then="approve"), headers=HTMX)
    assert response.status_code == 422 and "is empty" in body(response)
    assert response["HX-Retarget"] == "#editor-error"
    assert not Decision.objects.exists() and not Revision.objects.exists()


def test_an_unchanged_text_may_be_approved_but_not_saved(client: Client, me: Access, project: Project) -> None:
    sample = judged(project)
    open_queue(client)
    unchanged = form(sample, text=CHALLENGER, preference="challenger")
    assert client.post(url("sample-revise", sample.pk), unchanged, headers=HTMX).status_code == 422
    client.post(url("sample-revise", sample.pk), {**unchanged, "then": "approve"}, headers=HTMX)
    assert Decision.objects.get().action == "approve" and not Revision.objects.exists()


def test_a_stale_refinement_keeps_neither_revision_nor_decision(client: Client, me: Access, project: Project) -> None:
    sample = judged(project)
    open_queue(client)
    values = form(sample, text="mine", then="approve", queue="")
    Sample.objects.filter(pk=sample.pk).update(version=5)
    assert client.post(url("sample-revise", sample.pk), values, headers=HTMX).status_code == 412
    assert not Decision.objects.exists() and not Revision.objects.exists()


def test_the_editor_opens_with_the_draft(client: Client, me: Access, project: Project) -> None:
    sample = judged(project)
    open_queue(client)
    lease = Lease.objects.get()
    side = "left" if lease.swapped else "right"
    query = {"preference": side, "lease": str(lease.pk)}
    page = body(client.get(url("answer-editor", sample.pk), query))
    assert "sed -n" in page and "Your draft" not in page
    saved = client.post(url("sample-draft", sample.pk), {"text": "half a line", "comment": "hm"})
    assert saved.json()["saved_at"]
    client.post(url("sample-draft", sample.pk), {"comment": "hm hm"})
    assert Draft.objects.get().text == "half a line", "what is not sent stays"
    page = body(client.get(url("answer-editor", sample.pk), query))
    assert "half a line" in page and "Your draft" in page
    assert "hm hm" in body(open_queue(client))


def test_a_comment_draft_goes_with_the_decision_and_an_edited_text_stays(
    client: Client, me: Access, project: Project
) -> None:
    first, second = judged(project, priority=1.0), judged(project, priority=2.0)
    open_queue(client)
    client.post(url("sample-draft", first.pk), {"comment": "hm"})
    client.post(url("sample-decide", first.pk), form(first, action="approve", queue=""), headers=HTMX)
    assert not Draft.objects.exists()
    client.post(url("sample-draft", second.pk), {"text": "half a revision", "comment": "hm"})
    client.post(url("sample-decide", second.pk), form(second, action="approve", queue=""), headers=HTMX)
    draft = Draft.objects.get()
    assert (draft.text, draft.comment) == ("half a revision", "")


def test_the_protocol_is_checked_while_typing(client: Client, me: Access) -> None:
    page = body(client.post(url("answer-facts"), {"text": "```bash\nls\npwd\n```\n```bash\nls\n```"}))
    assert "no thought" in page and "2 bash blocks" in page and "3 commands" in page
