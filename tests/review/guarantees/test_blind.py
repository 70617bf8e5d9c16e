"""A reviewer cannot tell a sample that an audit drew from another one."""

import re
from typing import Any

import pytest
from playwright.sync_api import Browser
from pytest_django.live_server_helper import LiveServer

from curation.guarantees.models import Draw
from curation.projects.models import Project
from curation.review.models import Lease
from curation.samples.models import Sample
from tests.e2e.conftest import tab_of
from tests.review.guarantees.auditing import LOOKS, Caller
from tests.waiting import until_answered

pytestmark = pytest.mark.django_db(transaction=True)
# Every element with its classes and the names of its attributes, and the words that no sample has of its own.
SHAPE = """() => [...document.querySelectorAll("*")]
  .map((one) => `${one.tagName} ${one.className} ${one.getAttributeNames().sort()}`).sort()"""
WORDS = """() => [...new Set(document.body.innerText.split(/\\s+/))].filter((word) => !/\\d/.test(word)).sort()"""


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
