"""The demo's project: made by real runs on scripted models, once, whatever happens in between."""

import time
from collections import Counter
from pathlib import Path

import pytest
from pytest_django import Settings

from curation.dashboard.demo_project import make_demo_project
from curation.duels.models import Answer, Duel, Prompt, PullRequest, Verdict
from curation.projects.models import Project
from curation.review.models import Decision
from curation.runs.drive import drive
from curation.runs.models import Call, Item, Run
from curation.runs.tasks import work
from curation.samples.models import Bucket, Flag, Sample

pytestmark = pytest.mark.django_db(transaction=True)
COUNTED = (Project, Run, Item, Call, Prompt, PullRequest, Answer, Duel, Verdict, Sample, Decision)


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.MEDIA_ROOT = tmp_path / "files"
    monkeypatch.setattr(work, "apply_async", lambda *args, **options: None)


def counts() -> dict[str, int]:
    return {model.__name__: model._default_manager.count() for model in COUNTED}


def quiet(line: str) -> None:
    """What the demo says while it is made is for a person."""


def test_the_demo_shows_every_kind_of_duel_and_making_it_again_adds_nothing() -> None:
    project = make_demo_project(quiet)
    buckets = Counter(Duel.objects.of(project).values_list("bucket", flat=True))
    assert sum(buckets.values()) >= 30
    assert all(buckets[bucket] >= 3 for bucket in Bucket.values), buckets
    flags = Counter(name for duel in Duel.objects.all() for name in duel.flag_names)
    assert flags["leak"] >= 2 and flags["flip"] >= 2, flags
    assert not Duel.objects.filter(flags__in=[f for f in range(64) if f & Flag.LEAK], bucket="final").exists()
    assert Verdict.objects.filter(parsed=False).exists()
    assert Answer.objects.exclude(refusal="").exists()
    assert set(project.runs.values_list("state", flat=True)) == {"succeeded"}
    assert project.exports.count() == 1 and Decision.objects.count() >= 5
    run = Run.objects.get(kind="duel")
    assert run.result["skipped"]["challenger"] == {"no pull-request record: it cannot be challenged": 2}
    before, started = counts(), time.monotonic()
    make_demo_project(quiet)
    assert counts() == before
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("drives", [1, 3, 4, 5, 7])
def test_a_start_that_was_stopped_half_way_goes_on(monkeypatch: pytest.MonkeyPatch, drives: int) -> None:
    done: list[int] = []

    def stopped(run_id: int) -> None:
        if len(done) == drives:
            raise KeyboardInterrupt  # as Ctrl+C does
        done.append(run_id)
        drive(run_id)

    with monkeypatch.context() as patched:
        patched.setattr("curation.dashboard.demo_project.drive", stopped)
        with pytest.raises(KeyboardInterrupt):
            make_demo_project(quiet)
    project = make_demo_project(quiet)
    after = counts()
    answerable = Prompt.objects.of(project).answerable().with_record().count()
    assert (after["Duel"], after["Sample"], after["Verdict"]) == (answerable, answerable, 6 * answerable)
    assert Run.objects.filter(kind="duel").count() == 1
    assert set(project.runs.values_list("state", flat=True)) == {"succeeded"}
    assert Call.objects.values("content_hash").distinct().count() == Call.objects.count()
