"""The project `demo`: made by really running import → king → challenger → judge on scripted models, then some review.

Every step looks first at what is there, so that making it again, or going on after a kill, adds nothing twice.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from django.contrib.auth.models import User
from django.core.files import File
from django.db import transaction

from curation.dashboard.demo.evaluation import make_demo_evaluation
from curation.dashboard.demo.scenarios import make_demo_scenarios
from curation.duels.models import Duel, Prompt, PullRequest
from curation.imports.sources.stored import store_upload
from curation.llm.models import Endpoint
from curation.projects.access import Access
from curation.projects.models import SCOPES_OF_ROLE, Project, Role
from curation.projects.settings.change import create_project
from curation.projects.settings.document import Generation, Panel, ProjectSettings
from curation.review.decisions.decide import decide
from curation.review.models import Action, Decision
from curation.runs.engine.reap import reap_all
from curation.runs.engine.worker import drive
from curation.runs.launch import launch
from curation.runs.models import Run, RunState
from curation.samples.models import Bucket, Kind, Sample, Status

FOLDER = Path(__file__).parent / "files"
# Printed at every start: the demo is served on loopback only.
SLUG = USERNAME = PASSWORD = "demo"  # noqa: S105
KING, CHALLENGER = "scripted-king", "scripted-challenger"
JUDGES = ("scripted-judge-careful", "scripted-judge-brisk", "scripted-judge-first")
REAL_MODEL = "demo-model"
Say = Callable[[str], None]


class DemoFailed(Exception):
    """A run of the demo did not come through."""


@dataclass(frozen=True, slots=True)
class RealModel:
    """A model that the user brought: a LiteLLM string and, for a server of their own, its address."""

    model: str
    api_base: str


def make_demo_project(say: Say) -> Project:
    """Makes what is missing of the project, driving its runs in this process; seconds when all is there."""
    user = _user()
    project = Project.objects.filter(slug=SLUG).first() or _project(user)
    _models(project)
    for run in Run.objects.of(project).live().order_by("id"):
        _drive(run, say)  # an earlier start was stopped half-way
    if not PullRequest.objects.filter(project=project).exists():
        _import(project, user, "pr_records", say)
    if not Prompt.objects.of(project).exists():
        _import(project, user, "turns", say)
    if not Duel.objects.of(project).filter(run__isnull=False).exists():
        run = launch(project=project, kind="duel", params={"min_judges": len(JUDGES)}, user=user)
        _drive(run, say)
    _decide_some(project, user)
    make_demo_scenarios(project=project, user=user, drive=lambda run: _drive(run, say), say=say)
    _export(project, user, say)
    make_demo_evaluation(project=project, user=user, drive=lambda run: _drive(run, say), say=say)
    return project


def launch_real_duel(project: Project, real: RealModel) -> Run:
    """The same turns answered and judged by the user's own model; the worker works on it."""
    Endpoint.objects.update_or_create(
        project=project,
        name=REAL_MODEL,
        defaults={"model": real.model, "api_base": real.api_base, "api_key_env": _key_variable(), "max_concurrency": 4},
    )
    params = {"king_model": REAL_MODEL, "challenger_model": REAL_MODEL, "judges": [REAL_MODEL], "min_judges": 1}
    return launch(project=project, kind="duel", params=params, user=_user())


def _key_variable() -> str:
    """`WINNOW_DEMO_API_KEY` where it is set: the endpoint keeps the variable's name, never the key."""

    return "WINNOW_DEMO_API_KEY" if os.environ.get("WINNOW_DEMO_API_KEY") else ""


def _user() -> User:
    user, made = User.objects.get_or_create(username=USERNAME)
    if made or not user.has_usable_password():
        user.set_password(PASSWORD)
        user.save()
    return user


def _project(user: User) -> Project:
    with transaction.atomic():
        project = create_project(user=user, slug=SLUG, name="Demo: turns of a coding agent")
        project.guidelines = (FOLDER / "guidelines.md").read_text(encoding="utf-8")
        project.settings_json = ProjectSettings(
            panel=Panel(judges=list(JUDGES)), generation=Generation(king_model=KING, challenger_model=CHALLENGER)
        ).model_dump(mode="json")
        project.save()
    return project


def _models(project: Project) -> None:
    for name in (KING, CHALLENGER, *JUDGES):
        model = name.replace("scripted-", "scripted/", 1)
        Endpoint.objects.get_or_create(
            project=project, name=name, defaults={"model": model, "family": "scripted", "max_concurrency": 32}
        )


def _import(project: Project, user: User, kind: str, say: Say) -> None:
    path = FOLDER / f"{kind}.jsonl"
    with path.open("rb") as file:
        key = store_upload(project=project, file=File(file), name=path.name)
    params = {"kind": kind, "upload": key, "name": path.name}
    _drive(launch(project=project, kind="import", params=params, user=user), say)


def _drive(run: Run, say: Say) -> None:
    """Does the run's work here, with the worker's own code; a worker may help."""
    begun = time.monotonic()
    while True:
        drive(run.pk)
        run.refresh_from_db()
        if run.state not in (RunState.QUEUED, RunState.RUNNING):
            break
        reap_all()
        time.sleep(0.1)
    say(f"  {run.kind:<8} {run.items_done:>4} items  {time.monotonic() - begun:5.1f} s  {run.state}")
    if run.state != RunState.SUCCEEDED:
        raise DemoFailed(f"{run.kind} run {run.pk} {run.state}: {run.error}")


def _decide_some(project: Project, user: User) -> None:
    """A few decisions, so that the queue, the log and the pace have something to show; most is left to the visitor."""
    if Decision.objects.filter(sample__project=project, sample__kind=Kind.TURN).exists():
        return
    access = Access(user, project, Role.ADMIN, SCOPES_OF_ROLE[Role.ADMIN])
    pending = Sample.objects.of(project).filter(status=Status.PENDING).order_by("-score_key", "id")
    plan = (
        (Bucket.FINAL, Action.APPROVE, "", 7),
        (Bucket.REFINED, Action.REFINE, "", 1),
        (Bucket.DEFEAT, Action.REJECT, "repeats itself", 3),
    )
    with transaction.atomic():
        for bucket, action, reason, count in plan:
            for number, sample in enumerate(pending.filter(bucket=bucket, flags=0)[:count]):
                decide(access=access, sample_id=sample.pk, action=action, reason=reason, seconds=9.0 + 4 * number)


def _export(project: Project, user: User, say: Say) -> None:
    if project.exports.exists():
        return
    recipe = {"formats": ["sft-messages", "dpo"], "filter": {"status": "approved"}, "metadata": True}
    _drive(launch(project=project, kind="export", params={"recipe": recipe}, user=user), say)
