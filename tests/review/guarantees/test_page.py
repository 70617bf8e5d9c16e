"""The page of guarantees, and that a reviewer cannot tell a sample that an audit drew from another one."""

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from playwright.sync_api import Browser
from pytest_django.live_server_helper import LiveServer

from curation.guarantees.models import Audit, Draw, Guarantee
from curation.projects.models import Project, Role
from curation.review.models import Lease
from curation.samples.models import Sample
from tests.e2e.conftest import tab_of
from tests.factories import make_member
from tests.review.guarantees.auditing import AUDIT, LOOKS, Caller
from tests.waiting import until_answered

pytestmark = pytest.mark.django_db(transaction=True)
# Every element with its classes and the names of its attributes, and the words that no sample has of its own.
SHAPE = """() => [...document.querySelectorAll("*")]
  .map((one) => `${one.tagName} ${one.className} ${one.getAttributeNames().sort()}`).sort()"""
WORDS = """() => [...new Set(document.body.innerText.split(/\\s+/))].filter((word) => !/\\d/.test(word)).sort()"""


@pytest.fixture
def page(audited: object, reviewer: Caller) -> Client:
    client = Client()
    client.force_login(make_member(reviewer.project, role=Role.CURATOR))
    return client


def text(client: Client) -> str:
    answer = client.get(reverse("guarantee-page", args=["billing"]))
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def test_a_curator_draws_approves_and_withdraws(page: Client, reviewer: Caller) -> None:
    address = reverse("guarantee-page", args=["billing"])
    assert "40 pending samples" in text(page)
    assert page.post(address, {**AUDIT, "filter.repo": "acme/repo-1,acme/repo-2", "size": 30}).status_code == 422
    assert page.post(address, AUDIT).status_code == 302
    audit = Audit.objects.get()
    shown = text(page)
    assert "0 of 20, 0 agreed" in shown and "20 of 20 drawn samples wait for a look" in shown
    assert "Approve 20 under guarantee" not in shown
    reviewer.work_off()
    shown = text(page)
    assert "20 of 20, 20 agreed" in shown and "Approve 20 under guarantee" in shown
    assert "10 min 00 s, at 30 s per decision" in shown
    assert "approved unseen, %" in shown and '<th scope="row" class="num">20.0 %</th>' in shown
    page.post(reverse("audit-approve", args=["billing", audit.pk]), {"keep_alive": 0})
    guarantee = Guarantee.objects.get()
    shown = text(page)
    assert "With 90.0 % confidence, at most 20.0 % of these 20 samples would be rejected or changed" in shown
    assert f"?guarantee={guarantee.pk}" in shown and "Withdraw this guarantee?" in shown
    page.post(reverse("guarantee-withdraw", args=["billing", guarantee.pk]))
    shown = text(page)
    assert "Withdrawn" in shown and "20 pending samples" in shown
    assert "Nothing is promised any more about the 20 samples that it approved." in shown and "these 20" not in shown
    assert page.post(reverse("audit-approve", args=["billing", audit.pk]), {"keep_alive": 3}).status_code == 422


def share(project: Project, value: float) -> None:
    project.settings_json = {**project.settings_json, "review": {"audit_share": value}}
    project.save()


def keys(found: Any) -> Any:
    if isinstance(found, dict):
        return {name: keys(value) for name, value in found.items()}
    return [keys(value) for value in found] if isinstance(found, list) else type(found).__name__


def test_no_call_of_a_reviewer_tells_of_an_audit(curator: Caller, reviewer: Caller) -> None:
    audit = curator.draw()
    drawn = set(map(str, Draw.objects.values_list("sample_id", flat=True)))
    first = reviewer.next()
    assert first["id"] in drawn
    share(reviewer.project, 0.0)
    Lease.objects.all().delete()
    other = next(sample for sample in iter(reviewer.next, None) if sample["id"] not in drawn)
    assert keys(first) == keys(other) and set(first) == set(other)
    Lease.objects.all().delete()
    for path in ("", "/decisions", "/revisions", "/findings"):
        one, two = (reviewer("GET", f"/samples/{sample['id']}{path}") for sample in (first, other))
        assert keys(one) == keys(two)
    for path in (f"/audits/{audit['id']}", "/projects/billing/audits", "/projects/billing/guarantees"):
        reviewer("GET", path, status=403)
    reviewer("GET", "/projects/billing/audit", status=403)
    looked, not_looked = (reviewer.decide(sample["id"]) for sample in (first, other))
    assert keys(looked) == keys(not_looked)
    listed = reviewer("GET", "/projects/billing/samples")["data"]
    assert len({str(keys(row)) for row in listed if row["status"] == "pending"}) <= 2  # with and without a lease


def test_the_share_for_audits_mixes_them_with_other_samples(curator: Caller, reviewer: Caller) -> None:
    curator.draw()
    share(reviewer.project, 0.5)
    taken = [int(reviewer.next()["id"]) for _ in range(LOOKS)]
    drawn = set(Draw.objects.values_list("sample_id", flat=True))
    # By chance alone there are none or only drawn ones once in 100,000 times.
    assert 0 < sum(pk in drawn for pk in taken) < LOOKS


@pytest.mark.browser
def test_the_queue_shows_a_drawn_sample_as_any_other(
    browser: Browser, live_server: LiveServer, curator: Caller, reviewer: Caller
) -> None:
    curator.draw()
    shown: dict[bool, list[Any]] = {}
    for value in (1.0, 0.0):
        share(reviewer.project, value)
        Lease.objects.all().delete()
        if not value:  # the first in the queue that is not drawn
            others = Sample.objects.filter(draws=None).order_by("pk").values_list("pk", flat=True)
            Sample.objects.filter(pk=others[0]).update(priority=-1000.0)
        with tab_of(browser, live_server, reviewer.user) as tab:
            tab.goto("/p/billing/queue/", wait_until="networkidle")
            pk = tab.get_attribute("#review[data-sample]", "data-sample")
            is_drawn = Draw.objects.filter(sample=int(pk or 0)).exists()
            shown[is_drawn] = [tab.evaluate(SHAPE), tab.evaluate(WORDS), tab.url]
            assert not re.search("audit|guarantee", tab.content(), re.IGNORECASE)
            responses = tab.evaluate("performance.getEntriesByType('resource').map(e => new URL(e.name).pathname)")
            assert not any("audit" in path or "guarantee" in path for path in responses)
        until_answered()  # the page has fetched the next samples ahead, and given them back
    assert shown[True] == shown[False]
