import pytest
from django.test import Client

from curation.projects.access import Access
from curation.projects.models import Project
from curation.review.decisions.decide import decide
from curation.review.decisions.revise import revise
from curation.review.models import Decision, Draft, Lease, Pick, Revision
from curation.samples.models import Sample
from tests.factories import CHALLENGER, make_bearer
from tests.review.browsing import HTMX, body, first, form, left_of, open_queue, url
from tests.review.rows import judged, reviewer_of, show_all

pytestmark = pytest.mark.django_db


def test_saving_a_refinement_approves_it_and_goes_on(client: Client, me: Access, project: Project) -> None:
    one, second = judged(project, priority=1.0), judged(project, priority=2.0)
    open_queue(client)
    Lease.objects.update(swapped=True)
    values = form(
        one, text="THOUGHT: better.\r\n\r\n```bash\r\nls\r\n```", note="n", then="approve", preference="left", queue=""
    )
    response = client.post(url("sample-revise", one.pk), values, headers=HTMX)
    assert response.status_code == 200 and f"Sample {second.pk}" in body(response)
    revision = Revision.objects.get()
    assert (revision.of, revision.text) == (Pick.CHALLENGER, "THOUGHT: better.\n\n```bash\nls\n```")
    assert Decision.objects.get().revision == revision


def test_an_empty_refinement_is_refused_and_nothing_is_decided(client: Client, me: Access, project: Project) -> None:
    sample = judged(project)
    open_queue(client)
    response = client.post(
        url("sample-revise", sample.pk), form(sample, text=" ", then="approve", preference="left"), headers=HTMX
    )
    assert response.status_code == 422 and "is empty" in body(response)
    assert response["HX-Retarget"] == "#editor-error"
    assert not Decision.objects.exists() and not Revision.objects.exists()


def test_an_unchanged_text_may_be_approved_but_not_saved(client: Client, me: Access, project: Project) -> None:
    sample = judged(project)
    open_queue(client)
    side = "left" if Lease.objects.get().swapped else "right"
    unchanged = form(sample, text=CHALLENGER, preference=side)
    assert client.post(url("sample-revise", sample.pk), unchanged, headers=HTMX).status_code == 422
    client.post(url("sample-revise", sample.pk), {**unchanged, "then": "approve"}, headers=HTMX)
    assert Decision.objects.get().action == "approve" and not Revision.objects.exists()


def test_a_stale_refinement_keeps_neither_revision_nor_decision(client: Client, me: Access, project: Project) -> None:
    sample = judged(project)
    open_queue(client)
    values = form(sample, text="mine", then="approve", preference="left", queue="")
    Sample.objects.filter(pk=sample.pk).update(version=5)
    assert client.post(url("sample-revise", sample.pk), values, headers=HTMX).status_code == 412
    assert not Decision.objects.exists() and not Revision.objects.exists()


def test_the_editor_opens_with_the_draft(client: Client, me: Access, project: Project) -> None:
    sample = judged(project)
    open_queue(client)
    lease = Lease.objects.get()
    side = "left" if lease.swapped else "right"
    query = {"preference": side, "left": left_of(lease)}
    page = body(client.get(url("answer-editor", sample.pk), query))
    assert "sed -n" in page and "Your draft" not in page
    saved = client.post(url("sample-draft", sample.pk), {"text": "half a line", "comment": "hm", **query})
    assert saved.json()["saved_at"]
    client.post(url("sample-draft", sample.pk), {"comment": "hm hm"})
    assert Draft.objects.get().text == "half a line", "what is not sent stays"
    page = body(client.get(url("answer-editor", sample.pk), query))
    assert "half a line" in page and "Your draft" in page
    assert "hm hm" in body(open_queue(client))


def test_a_comment_draft_goes_with_the_decision_and_an_edited_text_stays(
    client: Client, me: Access, project: Project
) -> None:
    one, second = judged(project, priority=1.0), judged(project, priority=2.0)
    open_queue(client)
    client.post(url("sample-draft", one.pk), {"comment": "hm"})
    client.post(url("sample-decide", one.pk), form(one, action="approve", queue=""), headers=HTMX)
    assert not Draft.objects.exists()
    lease = Lease.objects.get()
    seat = {"preference": "left" if lease.swapped else "right", "left": left_of(lease)}
    client.post(url("sample-draft", second.pk), {"text": "half a revision", "comment": "hm", **seat})
    client.post(url("sample-decide", second.pk), form(second, action="approve", queue=""), headers=HTMX)
    draft = Draft.objects.get()
    assert (draft.text, draft.comment) == ("half a revision", "")


def test_the_protocol_is_checked_while_typing(client: Client, me: Access) -> None:
    page = body(client.post(url("answer-facts"), {"text": "```bash\nls\npwd\n```\n```bash\nls\n```"}))
    assert "no thought" in page and "2 bash blocks" in page and "3 commands" in page


def test_z_takes_a_saved_revision_back_before_the_decision_on_the_sample_before(
    client: Client, me: Access, project: Project
) -> None:
    show_all(project)
    before, sample = judged(project), judged(project)
    decide(access=me, sample_id=before.pk, action="approve")
    client.post(url("sample-page", sample.pk))
    values = form(sample, text="THOUGHT: Better.\n\n```bash\nls\n```", preference="right")
    saved = body(client.post(url("sample-revise", sample.pk), values, headers=HTMX))
    assert f"Sample {sample.pk}: revision 1" in saved, "the page says what z undoes"

    done = client.post(url("review-undo"), {"sample": sample.pk}, headers=HTMX)

    page = body(done)
    answers = first(r'(?s)id="plain-answers"(.*?)id="diff-', page)
    assert f'data-sample="{sample.pk}"' in page and "THOUGHT: Better." not in answers
    assert f"Undid revision 1 of sample {sample.pk}." in done["HX-Trigger"]
    assert "undone" in first(r'(?s)<ol class="story">(.*?)</ol>', page) and "undid revision 1" in page
    assert Sample.objects.get(pk=before.pk).status == "approved"
    listed = client.get(f"/api/v1/samples/{sample.pk}/revisions", headers=make_bearer(me.user)).json()["data"]
    assert [(row["number"], row["undone"]) for row in listed] == [(1, True)]


def test_rest_undoes_a_saved_revision_and_says_what_rests_on_it(client: Client, me: Access, project: Project) -> None:
    show_all(project)
    sample, headers = judged(project), make_bearer(me.user)
    for text in ("one", "two"):
        revise(access=me, sample_id=sample.pk, text=text)
    undone = client.post(f"/api/v1/samples/{sample.pk}/undo", headers=headers)
    second, first_one = Revision.objects.order_by("-number")
    assert (undone.json()["action"], undone.json()["revision"], undone["ETag"]) == ("undo", str(second.pk), '"4"')
    shown = client.get(f"/api/v1/samples/{sample.pk}", headers=headers).json()
    assert shown["answers"]["challenger"]["revision"] == str(first_one.pk)
    decide(access=reviewer_of(project), sample_id=sample.pk, action="approve")
    refused = client.post(f"/api/v1/samples/{sample.pk}/undo", headers=headers)
    assert refused.status_code == 409 and "has since decided" in refused.json()["detail"]
