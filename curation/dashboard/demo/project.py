"""The project `demo`: import, king, challenger, judge, then some review, all really run on scripted models.

Every step is skipped if its result exists, so a second start, or one after a kill, adds nothing twice.
"""

import os
import time

from django.contrib.auth.models import User
from django.db import transaction

from curation.dashboard.demo.builder import FILES, Builder, DemoFailed, Say, upload_sample
from curation.dashboard.demo.scenarios import make_demo_scenarios
from curation.duels.models import Duel, Prompt, PullRequest
from curation.evaluations.compare.baseline import pin_baseline
from curation.evaluations.models import EvaluatedModel, Evaluation, Split
from curation.llm.models import Endpoint
from curation.projects.models import Deletion, Project
from curation.projects.removal.carry_out import carry_out
from curation.projects.removal.change import delete_project
from curation.projects.settings.change import create_project
from curation.projects.settings.document import GenerationSettings, PanelSettings, ProjectSettings
from curation.review.models import Action, Decision
from curation.runs.launch import launch
from curation.runs.models import Run
from curation.samples.models import Bucket, Sample, SampleKind, SampleStatus

# Printed at every start: the demo is served on loopback only.
SLUG = USERNAME = PASSWORD = "demo"  # noqa: S105
KING, CHALLENGER = "scripted-king", "scripted-challenger"
JUDGES = ("scripted-judge-careful", "scripted-judge-brisk", "scripted-judge-first")
OWN_MODEL = "demo-model"
ROWS, TRAINING = "eval_rows.jsonl", "eval_training.jsonl"
BASE, TUNED = "scripted-base-cli", "scripted-tuned-cli"
REMOVED_WITHIN = 120.0


def begin_demo_project() -> Project:
    """Return the project, with its user and settings; everything else is missing at first."""
    user = _user()
    return Project.objects.filter(slug=SLUG).first() or _project(user)


def make_demo_project(say: Say, *, runs_here: bool = True) -> Project:
    """Add the missing parts of the project; takes seconds if the project is complete.

    With `runs_here` its runs are done in this process, else by the workers.
    """
    project = begin_demo_project()
    build = Builder(project, _user(), say, runs_here)
    build.add_scripted_models((KING, CHALLENGER, *JUDGES))
    for run in Run.objects.of(project).live().order_by("id"):
        build.drive(run)  # an earlier start was interrupted
    if not PullRequest.objects.filter(project=project).exists():
        build.import_rows("pr_records", "pr_records.jsonl")
    if not Prompt.objects.of(project).exists():
        build.import_rows("turns", "turns.jsonl")
    if not Duel.objects.of(project).filter(run__isnull=False).exists():
        build.run("duel", min_judges=len(JUDGES))
    _decide_some(build)
    make_demo_scenarios(build)
    if not project.exports.filter(round=None).exists():
        recipe = {"formats": ["sft-messages", "dpo"], "filter": {"status": "approved"}, "metadata": True}
        build.run("export", recipe=recipe)
    make_demo_evaluation(build)
    return project


def make_demo_evaluation(build: Builder) -> None:
    """Add the missing parts of two scripted models on a small split: it, its check, the evaluation, the baseline."""
    build.add_scripted_models((BASE, TUNED), price_in=0, price_out=0)
    split = Split.objects.of(build.project).filter(name=ROWS, rows_count__gt=0).first()
    if split is None:
        split = Split.objects.get(run=build.import_rows("eval_rows", ROWS))
    if not split.checks.filter(ready=True).exists():
        build.run("contamination", split=str(split.pk), upload=upload_sample(build.project, TRAINING))
    if not Evaluation.objects.filter(split=split).exists():
        build.run("evaluate", models=[BASE, TUNED], split=str(split.pk), family="aws")
        pin_baseline(access=build.access, model=EvaluatedModel.objects.get(evaluation__split=split, name=BASE))
        build.say("  Evaluation of two scripted models: see the page Evaluations")


def remove_demo_project() -> None:
    """Delete the project as an admin's *Delete* does, with its files; go on with a removal that was interrupted.

    Raises `DemoFailed` if something still works on the project, such as a worker elsewhere.
    """
    project = Project.objects.filter(slug=SLUG).first()
    if project is None:
        return
    if project.deleting_at is None:
        delete_project(access=Builder(project, _user(), print).access, name=project.name)
    deletion = Deletion.objects.filter(noun="project", target_id=project.pk).latest("id")
    until = time.monotonic() + REMOVED_WITHIN
    while deletion.finished_at is None:
        if time.monotonic() > until:
            raise DemoFailed(f"The project `{SLUG}` is not removed yet: {deletion.error or 'a worker does it'}")
        carry_out(deletion.pk)
        time.sleep(0.1)
        deletion.refresh_from_db()


def launch_own_model(project: Project, model: str) -> Run:
    """Let the user's own model (a LiteLLM string) answer and judge the same turns; the worker does the run."""
    endpoint = {
        "model": model,
        "api_base": os.environ.get("WINNOW_DEMO_API_BASE", ""),
        # The name of the variable: keys are never stored.
        "api_key_env": "WINNOW_DEMO_API_KEY" if os.environ.get("WINNOW_DEMO_API_KEY") else "",
        "max_concurrency": 4,
    }
    Endpoint.objects.update_or_create(project=project, name=OWN_MODEL, defaults=endpoint)
    params = {"king_model": OWN_MODEL, "challenger_model": OWN_MODEL, "judges": [OWN_MODEL], "min_judges": 1}
    return launch(project=project, kind="duel", params=params, user=_user())


def _user() -> User:
    user, made = User.objects.get_or_create(username=USERNAME)
    if made or not user.has_usable_password():
        user.set_password(PASSWORD)
    user.is_staff = True  # may create projects
    user.save()
    return user


def _project(user: User) -> Project:
    with transaction.atomic():
        project = create_project(user=user, slug=SLUG, name="Demo: turns of a coding agent")
        project.guidelines = (FILES / "guidelines.md").read_text(encoding="utf-8")
        project.settings_json = ProjectSettings(
            panel=PanelSettings(judges=list(JUDGES)),
            generation=GenerationSettings(king_model=KING, challenger_model=CHALLENGER),
        ).model_dump(mode="json")
        project.save()
    return project


def _decide_some(build: Builder) -> None:
    """Decide some samples, so that queue, log and pace show something; the visitor decides the rest."""
    if Decision.objects.filter(sample__project=build.project, sample__kind=SampleKind.TURN).exists():
        return
    pending = Sample.objects.of(build.project).filter(status=SampleStatus.PENDING, flags=0).order_by("-score_key", "id")
    plan = (
        (Bucket.FINAL, Action.APPROVE, "", 7),
        (Bucket.REFINED, Action.REFINE, "", 1),
        (Bucket.DEFEAT, Action.REJECT, "repeats itself", 3),
    )
    with transaction.atomic():
        for bucket, action, reason, count in plan:
            samples = pending.filter(bucket=bucket).values_list("pk", flat=True)[:count]
            build.decide(samples, action, reason=reason, seconds=9.0)
