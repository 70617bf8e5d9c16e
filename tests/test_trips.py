"""Through how many of our files, and calls, a request runs: what somebody reads who wants to change it.

The budgets are a little above the figures of the day they were set: a few calls differ with the tests before, whose
work is cached. They go down, not up.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import pytest
from django.test import Client

from curation.projects.access import Access
from curation.projects.models import Project
from curation.review.models import Decision
from curation.samples.models import Sample
from tests.exports.exporting import rows, run_export
from tests.factories import make_bearer, make_duel
from tests.product import ROOT
from tests.review.browsing import HTMX, form, open_queue, url
from tests.review.conftest import me, project  # noqa: F401 - fixtures
from tests.review.importing import ASKED, FIVE, FOUR, bring_samples
from tests.review.rows import judged

pytestmark = pytest.mark.django_db
OURS = tuple(f"{ROOT / name}/" for name in ("config", "curation", "judging", "sandbox"))
JSON = "application/json"


@dataclass
class Trip:
    """The files of ours in which functions were called, and the number of these calls."""

    files: set[str] = field(default_factory=set)
    calls: int = 0

    def count(self, frame: FrameType, event: str, argument: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(OURS):
            self.files.add(str(Path(name).relative_to(ROOT)))
            self.calls += 1


@contextmanager
def trip() -> Iterator[Trip]:
    counted, before = Trip(), sys.getprofile()
    sys.setprofile(counted.count)
    try:
        yield counted
    finally:
        sys.setprofile(before)


def assert_within(counted: Trip, *, files: int, calls: int | None = None) -> None:
    assert len(counted.files) <= files, f"{len(counted.files)} files: {', '.join(sorted(counted.files))}"
    assert calls is None or counted.calls <= calls, f"{counted.calls} calls"


def test_a_decision_by_key(client: Client, me: Access, project: Project) -> None:  # noqa: F811
    for sample in (judged(project), judged(project)):  # the first fills caches
        judged(project)
        open_queue(client)
        values = form(sample, action="approve", preference="left", queue="")
        with trip() as counted:
            answer = client.post(url("sample-decide", sample.pk), values, headers=HTMX)
        assert answer.status_code == 200
    assert Decision.objects.count() == 2
    assert_within(counted, files=34, calls=615)


def test_a_decision_by_rest(me: Access, project: Project) -> None:  # noqa: F811
    client, headers = Client(), make_bearer(me.user)
    for sample in (judged(project), judged(project)):
        with trip() as counted:
            answer = client.post(f"/api/v1/samples/{sample.pk}/decisions", {"action": "approve"}, JSON, headers=headers)
        assert answer.status_code == 201
    assert_within(counted, files=22, calls=220)


def test_a_list_of_three_samples(client: Client, me: Access, project: Project) -> None:  # noqa: F811
    for _ in range(3):
        make_duel(project)
    for _ in range(2):
        with trip() as counted:
            answer = client.get(url("sample-list"))
        assert answer.status_code == 200
    assert_within(counted, files=20, calls=285)


@pytest.mark.django_db(transaction=True)
def test_a_row_of_a_file_from_its_upload_to_the_row_of_an_export(me: Access, project: Project) -> None:  # noqa: F811
    client, headers = Client(), make_bearer(me.user)
    for answer in (FOUR, FIVE):
        with trip() as counted:
            assert bring_samples(project, me.user, [{"messages": [*ASKED, answer]}]).state == "succeeded"
            path = f"/api/v1/samples/{Sample.objects.latest('id').pk}/decisions"
            assert client.post(path, {"action": "approve"}, JSON, headers=headers).status_code == 201
            export = run_export(project, {"formats": ["sft-messages"]})
    assert len(rows(export, "sft-messages.train.jsonl")) == 2
    assert_within(counted, files=110)
