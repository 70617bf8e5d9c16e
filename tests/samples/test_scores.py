"""The columns that scoring writes, and those it leaves alone."""

from dataclasses import replace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from curation.projects.models import Project
from curation.projects.settings.document import ThresholdSettings
from curation.samples.models import Sample, SampleStatus, SampleText
from curation.samples.scores import BODY_BYTES, SampleRow, preview_of, priority_of, trajectory_priority, upsert_samples
from tests.factories import make_project, make_run, make_user

pytestmark = pytest.mark.django_db


def row(project: Project, **values: object) -> SampleRow:
    plain = SampleRow(
        project_id=project.pk,
        run_id=None,
        existing_id=None,
        kind="turn",
        score=70.0,
        bucket="refined",
        flags=0,
        priority=4.0,
        source="turns.jsonl",
        repo="acme/billing",
        instance_id="acme__billing-1",
        action_style="read",
        model="challenger-a",
        preview="Read the file",
        body="Fix the rounding of totals",
    )
    return replace(plain, **values)  # type: ignore[arg-type]  # keyword values of any field


def test_new_rows_come_back_in_order_with_their_text() -> None:
    project = make_project()
    run = make_run(project)
    made = upsert_samples(
        [row(project, instance_id=f"i-{n}", run_id=run.pk, score=None if n == 1 else n) for n in range(3)]
    )
    stored = list(Sample.objects.order_by("id"))
    assert [s.pk for s in made] == [s.pk for s in stored]
    assert [s.instance_id for s in stored] == ["i-0", "i-1", "i-2"]
    assert [(s.score, s.score_key) for s in stored] == [(0.0, 0.0), (None, -1.0), (2.0, 2.0)]
    assert stored[0].run == run
    assert SampleText.objects.get(sample=stored[2]).body == "Fix the rounding of totals"


def test_a_new_score_never_touches_what_a_person_decided() -> None:
    project, person = make_project(), make_user()
    [first] = upsert_samples([row(project)])
    Sample.objects.filter(pk=first.pk).update(
        status=SampleStatus.APPROVED, version=4, decided_by=person, leak_cleared=True, decided_at=first.created_at
    )
    [again, other] = upsert_samples(
        [row(project, existing_id=first.pk, score=91.0, bucket="final", flags=2, body="New text"), row(project)]
    )
    stored = Sample.objects.get(pk=first.pk)
    assert again.pk == first.pk != other.pk
    assert (stored.score, stored.score_key, stored.bucket, stored.flags) == (91.0, 91.0, "final", 2)
    assert (stored.status, stored.version, stored.decided_by, stored.leak_cleared) == ("approved", 4, person, True)
    assert stored.created_at == first.created_at
    assert stored.text.body == "New text"
    assert (again.status, again.version, again.created_at) == ("approved", 4, stored.created_at)


def test_a_sample_of_another_project_is_refused() -> None:
    [mine] = upsert_samples([row(make_project())])
    with pytest.raises(ValueError, match="another project"):
        upsert_samples([row(make_project(), existing_id=mine.pk, score=1.0)])
    assert Sample.objects.get().score == 70.0


def test_a_sample_deleted_meanwhile_is_created_again() -> None:
    project = make_project()
    [gone] = upsert_samples([row(project)])
    gone_id = gone.pk
    gone.delete()
    upsert_samples([row(project, existing_id=gone_id)])
    assert Sample.objects.count() == 1


def test_500_rows_cost_a_few_statements() -> None:
    project = make_project()
    with CaptureQueriesContext(connection) as new:
        made = upsert_samples([row(project) for _ in range(500)])
    with CaptureQueriesContext(connection) as old:
        upsert_samples([row(project, existing_id=sample.pk, score=1.0) for sample in made])
    limit = 12 if connection.vendor == "postgresql" else 40  # SQLite takes 999 values a statement
    assert len(new) <= limit
    assert len(old) <= limit
    assert Sample.objects.filter(score=1.0).count() == 500


def test_hostile_text_is_stored_harmless() -> None:
    project = make_project()
    [sample] = upsert_samples(
        [row(project, preview="\x1b[31mred\x1b[0m\n\n\ttwo\u202ecod\x00", body="a\x00b\ud800c", repo="r\x00")]
    )
    stored = Sample.objects.get(pk=sample.pk)
    assert stored.preview == "\ufffd[31mred\ufffd[0m two\ufffdcod\ufffd"
    assert stored.repo == "r\ufffd"
    assert stored.text.body == "a\ufffdb?c"


def test_long_text_is_cut() -> None:
    project = make_project()
    [sample] = upsert_samples([row(project, preview="word " * 100, body="é" * BODY_BYTES)])
    stored = Sample.objects.get(pk=sample.pk)
    assert len(stored.preview) == 200
    assert len(stored.text.body.encode()) == BODY_BYTES


def test_a_preview_of_blanks_is_empty() -> None:
    assert preview_of(" \n\t ") == ""


EDGES = ThresholdSettings(final=80.0, refined=66.0)


def priority(score: float | None, *, flipped: bool = False, spread: float = 0.0, held: bool = False) -> float:
    return priority_of(score=score, thresholds=EDGES, flipped=flipped, spread=spread, held=held)


def test_the_nearest_edge_counts() -> None:
    assert priority(80.0) == 0.0
    assert priority(79.0) == 1.0
    assert priority(67.5) == 1.5
    assert priority(73.0) == 7.0
    assert priority(100.0) == 20.0
    assert priority(0.0) == 66.0


def test_doubt_brings_a_sample_forward() -> None:
    plain = priority(95.0)
    assert priority(95.0, flipped=True) < plain
    assert priority(95.0, spread=40.0) < priority(95.0, spread=20.0) < plain
    assert priority(95.0, held=True) < priority(95.0, flipped=True)


def test_unparsed_samples_come_last() -> None:
    worst = priority_of(
        score=0.0, thresholds=ThresholdSettings(final=100.0, refined=100.0), flipped=False, spread=0.0, held=False
    )
    assert priority(None, flipped=True, spread=100.0, held=True) > worst


def trajectory(**facts: bool) -> float:
    given = {"keep": False, "machine": False, "looping": False, "passed": False, "differs": False}
    return trajectory_priority(**{**given, **facts})


def test_doubtful_trajectories_come_first_and_failures_of_the_machine_last() -> None:
    kept, rejected = trajectory(keep=True, passed=True), trajectory()
    kept_but_looping = trajectory(keep=True, passed=True, looping=True)
    passed_with_the_wrong_terminal = trajectory(passed=True)
    replayed_otherwise = trajectory(keep=True, passed=True, differs=True)
    doubtful_twice = trajectory(keep=True, passed=True, looping=True, differs=True)
    lost = trajectory(machine=True, passed=True)
    for doubtful in (kept_but_looping, passed_with_the_wrong_terminal, replayed_otherwise):
        assert doubtful_twice < doubtful < kept < rejected < lost
    assert trajectory(looping=True) == rejected  # a rejected one may go round in circles
