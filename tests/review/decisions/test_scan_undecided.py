"""Undecided samples are scanned under the current rules without being touched."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from curation.review.decisions import findings
from curation.review.decisions.findings import flag_findings, scan_undecided
from curation.review.models import Clearance
from curation.review.tasks import scan
from curation.samples import scores
from curation.samples.models import Flag, Sample, SampleStatus
from curation.samples.texts import text_sha256
from judging.scan.scan import rule_set_version
from tests.factories import make_duel, make_project, make_trajectory, make_user

pytestmark = pytest.mark.django_db
MAIL = "grace.hopper@newmill.org"
KEY = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3gH5"


def make_sample(challenger: str, **values: Any) -> Sample:
    sample = make_duel(make_project(), challenger=challenger, **values).sample
    assert sample is not None
    return sample


def flags_of(sample: Sample) -> int:
    sample.refresh_from_db()
    return sample.flags & (Flag.SECRET | Flag.PII)


def test_samples_from_before_the_scan_get_their_flags_and_nothing_else() -> None:
    pending = make_sample(f"THOUGHT: Ask {MAIL}.")
    refine = make_sample(f"THOUGHT: {KEY}", status=SampleStatus.NEEDS_REFINE)
    clean, approved = make_sample("THOUGHT: ls"), make_sample(f"THOUGHT: Ask {MAIL}.", status=SampleStatus.APPROVED)
    session = make_trajectory(make_project(), commands=(f"mail {MAIL}",), outputs=("",)).sample
    assert session is not None
    version = pending.version

    scan()

    assert (flags_of(pending), flags_of(refine), flags_of(clean)) == (Flag.PII, Flag.SECRET, 0)
    assert flags_of(session) == Flag.PII
    assert flags_of(approved) == 0
    assert pending.version == version
    assert {sample.scan_rules for sample in (pending, clean, session)} == {rule_set_version()}
    assert scan_undecided() == 0


def test_a_new_version_of_the_rules_scans_them_again(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = make_sample(f"THOUGHT: Ask {MAIL}.")
    scan_undecided()
    Sample.objects.update(flags=0)
    assert scan_undecided() == 0
    for version in ("0000", "zzzz"):  # before and after the version of today
        monkeypatch.setattr(findings, "rule_set_version", lambda version=version: version)
        assert scan_undecided() == 1
        assert flags_of(sample) == Flag.PII
        assert sample.scan_rules == version
        Sample.objects.update(flags=0)


def test_one_pass_has_a_known_size_and_the_next_goes_on() -> None:
    for _ in range(5):
        make_sample("THOUGHT: ls")

    assert [scan_undecided(at_most=2) for _ in range(4)] == [2, 2, 1, 0]


def test_what_a_person_cleared_stays_cleared() -> None:
    sample = make_sample(f"THOUGHT: Ask {MAIL}.")
    Clearance.objects.create(
        sample=sample, rule="email", value_sha256=text_sha256(MAIL), reason="public", cleared_by=make_user()
    )
    scan_undecided()

    assert flags_of(sample) == 0


def test_a_sample_that_is_scored_again_is_scanned_again() -> None:
    sample = make_sample("THOUGHT: ls")
    flag_findings(sample)
    row = scores.SampleRow(
        project_id=sample.project_id, run_id=None, existing_id=sample.pk, kind="turn", score=50.0, bucket="refined",
        flags=0, priority=1.0, source="", repo="", instance_id="", action_style="", model="", preview="x", body="x",
    )  # fmt: skip
    scores.upsert_samples([row])
    sample.refresh_from_db()
    assert sample.scan_rules == ""
    (new,) = scores.upsert_samples(
        [row.__class__(**{**{f: getattr(row, f) for f in row.__slots__}, "existing_id": None})]
    )
    assert new.scan_rules == rule_set_version()


def test_a_pass_without_work_reads_only_the_index() -> None:
    with CaptureQueriesContext(connection) as queries:
        assert scan_undecided() == 0
    assert len(queries) == 4
    if connection.vendor == "sqlite":
        plans = []
        for query in queries.captured_queries:
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN QUERY PLAN {query['sql']}")
                plans += [row[3] for row in cursor.fetchall()]
        assert all("sample_to_scan" in plan for plan in plans), plans
