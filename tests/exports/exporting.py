"""Helpers for exports: approved duels, a run driven by the real engine, and the files it wrote."""

import hashlib
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import orjson
from django.contrib.auth.models import User
from django.core.files.storage import default_storage
from django.db import transaction
from django.utils import timezone

from curation.duels.models import Opponent
from curation.exports.formats import FORMATS
from curation.exports.models import Export
from curation.projects.models import Project
from curation.review.decisions.state import name_approved_texts
from curation.review.models import Action, Decision, Pick, Revision
from curation.runs.engine.worker import drive
from curation.runs.kinds import kind_of
from curation.runs.launch import launch
from curation.runs.models import Item, Run, RunState
from curation.samples.models import Sample, SampleStatus
from curation.scenarios.models import Scenario
from curation.trajectories.models import Pair, Strategy, Trajectory
from tests.factories import make_duel, make_trajectory, make_user, ticket

# The metadata of a row about which nothing is known.
NO_METADATA: dict[str, Any] = {
    **dict.fromkeys(("instance_id", "scenario", "repo", "tier", "task", "documentation_read", "provider_asked"), ""),
    **dict.fromkeys(("bucket", "guarantee", "run", "outcome"), ""),
    **{"score": -1.0, "reviewers": [], "reward": None, "rewards": {}, "metadata": {}},
}
WORKER = SimpleNamespace(checkpoint=lambda: None)
# The formats that have rows of answers; others need a session with labels, rewards or its document.
OF_ANSWERS = [name for name, form in FORMATS.items() if form.chat and name != "rollouts"]


def answer(number: int) -> str:
    """An answer that is unlike those of other numbers."""
    return f"THOUGHT: {ticket(number)}\n\n```bash\nls\n```"


def approve(sample: Sample | None, *, by: User, pick: str = Pick.CHALLENGER, **values: Any) -> Sample:
    """Approve a sample as the review does."""
    assert sample is not None
    # A revision, which the review would have counted as a version, may have been made by hand.
    sample.version += sample.revisions.count()
    line = Decision(sample=sample, reviewer=by, action=Action.APPROVE, pick=pick, version=sample.version)
    name_approved_texts([line])
    line.save()
    sample.status, sample.version = SampleStatus.APPROVED, sample.version + 1
    for name, value in values.items():
        setattr(sample, name, value)
    sample.save()
    return sample


def reject(sample: Sample | None, *, by: User) -> Sample:
    """Reject a sample as the review does."""
    assert sample is not None
    Decision.objects.create(sample=sample, reviewer=by, action=Action.REJECT, version=sample.version)
    sample.status, sample.version = SampleStatus.REJECTED, sample.version + 1
    sample.save()
    return sample


def make_rejected(project: Project, *, by: User | None = None, **values: Any) -> Sample:
    """A duel's sample that a person rejected; `values` go to `make_duel`."""
    return reject(make_duel(project, **values).sample, by=by or make_user())


def same_prompt(*samples: Sample) -> None:
    """Let the turns of all samples answer the prompt of the first one, without another answer beside theirs."""
    prompt = samples[0].duel.prompt
    for sample in samples:
        duel = sample.duel
        duel.challenger.prompt = prompt
        duel.challenger.save()
        duel.prompt, duel.king, duel.opponent = prompt, None, Opponent.NONE
        duel.save()


def make_approved(project: Project, *, by: User | None = None, pick: str = Pick.CHALLENGER, **values: Any) -> Sample:
    """A duel's sample that a person approved; `values` go to `make_duel`."""
    return approve(make_duel(project, **values).sample, by=by or make_user(), pick=pick)


def make_kept(
    project: Project, scenario: Scenario | None = None, *, by: User | None = None, **values: Any
) -> Trajectory:
    """A trajectory whose sample a person approved; `values` go to `make_trajectory`."""
    trajectory = make_trajectory(project, scenario, **values)
    approve(trajectory.sample, by=by or make_user())
    return trajectory


def make_pair(
    chosen: Trajectory, rejected: Trajectory, strategy: str = Strategy.FIRST_DIVERGENCE, at: int | None = None
) -> Pair:
    """Two trajectories of one scenario or task as the stage `pairs` stores them."""
    if at is None and strategy == Strategy.WHOLE_TRAJECTORY:
        at = 1
    elif at is None:
        sides = zip(chosen.text.steps, rejected.text.steps, strict=False)
        at = next(index for index, (one, other) in enumerate(sides) if one["message"] != other["message"])
    return Pair.objects.create(
        project=chosen.project, scenario=chosen.scenario, chosen=chosen, rejected=rejected, strategy=strategy, at=at
    )


def revise(sample: Sample, text: str, *, by: User, of: str = Pick.CHALLENGER) -> Revision:
    number = sample.revisions.count() + 1
    return Revision.objects.create(sample=sample, author=by, number=number, text=text, of=of)


def run_export(project: Project, recipe: dict[str, Any] | str, *, user: User | None = None) -> Export:
    """Launch the run and drive it like a worker."""
    run = launch(project=project, kind="export", params={"recipe": recipe}, user=user)
    return drive_export(run)


def export_of(project: Project, recipe: dict[str, Any] | str, *, user: User | None = None) -> Export:
    """Launch the run and do the work of its stages in turn, without the engine's claims: for tests of files and pages.
    Raises `ItemFailed`."""
    run = launch(project=project, kind="export", params={"recipe": recipe}, user=user)
    kind = kind_of("export")
    params = kind.read(run)
    stages: Sequence[Any] = kind.stages(params)
    for stage in stages:
        write = stage.work(WORKER, Item(run=run))
        with transaction.atomic():
            write()
    result = {**run.result, **kind.finish(run, params)}
    Run.objects.filter(pk=run.pk).update(state=RunState.SUCCEEDED, result=result, finished_at=timezone.now())
    return Export.objects.get(run=run)


def drive_export(run: Run) -> Export:
    for _ in range(5):
        drive(run.pk)
    return Export.objects.get(run=run)


def content(export: Export, name: str) -> bytes:
    """A file's bytes, checked against its recorded size and hash."""
    file = export.files.get(name=name)
    with default_storage.open(file.stored_as) as opened:
        data = bytes(opened.read())
    assert (len(data), hashlib.sha256(data).hexdigest()) == (file.bytes, file.sha256)
    return data


def rows(export: Export, name: str) -> list[Any]:
    return [orjson.loads(line) for line in content(export, name).splitlines()]


def reasons(export: Export) -> dict[str, str]:
    """Return the reasons in `excluded.jsonl` by sample id."""
    return {row["sample"]: row["reason"] for row in rows(export, "excluded.jsonl")}
