"""Flags as a list to work on: their author, reason, time and resolution."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from curation.notifications.models import Notification
from curation.projects.access import Access
from curation.projects.models import AuditEntry, Project, Role
from curation.review.decisions.decide import decide
from curation.review.decisions.undo import undo
from curation.samples.models import Sample
from tests.factories import make_bearer, make_member
from tests.review.browsing import body, first
from tests.review.rows import judged, reviewer_of

pytestmark = pytest.mark.django_db


def test_a_flag_is_listed_until_it_is_resolved_with_a_note(client: Client, project: Project, me: Access) -> None:
    ann = reviewer_of(project)
    one, two, three = (judged(project) for _ in range(3))
    for sample in (one, two, three):
        decide(access=ann, sample_id=sample.pk, action="flag", reason=f"cut {sample.pk}", comment="after line 3")
    undo(access=ann, sample_id=three.pk)
    headers, calls = make_bearer(me.user), f"/api/v1/samples/{one.pk}/flags/resolve"

    def listed(query: str = "") -> list[str]:
        found = client.get(f"/api/v1/projects/billing/flags{query}", headers=headers).json()["data"]
        return [row["sample"] for row in found]

    assert listed() == [str(two.pk), str(one.pk)]
    page = client.get(reverse("flag-list", args=["billing"])).content.decode()
    assert f"cut {one.pk}" in page and "Open 2" in page and f"cut {three.pk}" not in page
    assert client.post(calls, {"note": " "}, "application/json", headers=headers).status_code == 422
    version = Sample.objects.get(pk=one.pk).version
    done = client.post(calls, {"note": "Excluded the prompt."}, "application/json", headers=headers)
    assert done.status_code == 200 and len(done.json()["resolved"]) == 1
    assert client.post(calls, {"note": "again"}, "application/json", headers=headers).status_code == 409

    assert (listed(), listed("?state=resolved")) == ([str(two.pk)], [str(one.pk)])
    resolved = client.get("/api/v1/projects/billing/flags?state=resolved", headers=headers).json()["data"][0]
    assert (resolved["reason"], resolved["resolution"]["note"]) == (f"cut {one.pk}", "Excluded the prompt.")
    assert Sample.objects.get(pk=one.pk).version == version
    assert AuditEntry.objects.get(action="sample.resolve_flags").subject == str(one.pk)
    note = Notification.objects.get()
    assert (note.user, note.text) == (ann.user, f"{me.user.username} resolved your flag on sample {one.pk}")


def test_the_page_of_a_sample_shows_an_open_flag_and_forgets_a_resolved_one(
    client: Client, project: Project, me: Access
) -> None:
    sample = judged(project)
    decide(access=reviewer_of(project), sample_id=sample.pk, action="flag", reason="the prompt is cut")
    address = reverse("sample-page", args=["billing", sample.pk])
    resolve = reverse("flags-resolve", args=["billing", sample.pk])

    assert "the prompt is cut" in client.post(address).content.decode()
    viewer = Client()
    viewer.force_login(make_member(project, role=Role.VIEWER))
    assert viewer.post(resolve, {"note": "x"}).status_code == 403
    assert client.post(resolve, {"note": "It is not: the rest is folded."}).status_code == 302
    assert "Flagged by" not in client.post(address).content.decode()
    decide(access=me, sample_id=sample.pk, action="flag", reason="once more")
    assert "once more" in client.get(reverse("flag-list", args=["billing"])).content.decode()


def test_resolving_a_flag_keeps_the_reviewer_where_they_were(client: Client, project: Project, me: Access) -> None:
    samples = [judged(project, priority=float(n)) for n in range(3)]
    for sample in samples:
        decide(access=reviewer_of(project), sample_id=sample.pk, action="flag", reason="the prompt is cut")

    def resolve(sample: Sample, shown: str) -> str:
        """Send the form as the page has it; return where it leads."""
        form = first(r'(<form class="row" method="post" action="[^"]*/flags/resolve/">.*?</form>)', shown)
        hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form))
        done = client.post(reverse("flags-resolve", args=["billing", sample.pk]), {**hidden, "note": "read it"})
        assert done.status_code == 302
        return done["Location"]

    queue = reverse("queue", args=["billing"]) + "?order=newest"
    assert resolve(samples[2], body(client.post(queue, follow=True))) == queue
    shown = body(client.get(queue))
    assert f'data-sample="{samples[2].pk}"' in shown and "Flagged by" not in shown
    alone = reverse("sample-page", args=["billing", samples[0].pk])
    assert resolve(samples[0], body(client.post(alone))) == alone
    back = f"{reverse('sample-page', args=['billing', samples[1].pk])}?queue=order%3Dnewest&at=1"
    assert resolve(samples[1], body(client.post(back))) == back
    decide(access=me, sample_id=samples[1].pk, action="flag", reason="once more")
    from_list = client.post(reverse("flags-resolve", args=["billing", samples[1].pk]), {"note": "done"})
    assert from_list["Location"] == reverse("flag-list", args=["billing"])
