"""The demo's evaluation: two scripted models over a small hand-written split, checked against training rows first."""

from collections.abc import Callable
from pathlib import Path

from django.contrib.auth.models import User
from django.core.files import File

from curation.evaluations.compare.baseline import pin_baseline
from curation.evaluations.models import EvaluatedModel, Evaluation, Split
from curation.imports.sources.stored import store_upload
from curation.llm.models import Endpoint
from curation.projects.access import Access
from curation.projects.models import SCOPES_OF_ROLE, Project, Role
from curation.runs.launch import launch
from curation.runs.models import Run

FOLDER = Path(__file__).parent / "files"
ROWS, TRAINING = "eval_rows.jsonl", "eval_training.jsonl"
BASE, TUNED = "scripted-base-cli", "scripted-tuned-cli"
Say = Callable[[str], None]


def make_demo_evaluation(*, project: Project, user: User, drive: Callable[[Run], None], say: Say) -> None:
    """Makes what is missing: the models, the split, its contamination check, the evaluation, the pinned baseline."""
    for name in (BASE, TUNED):
        model = name.replace("scripted-", "scripted/", 1)
        given = {"model": model, "family": "scripted", "max_concurrency": 32, "price_in": 0, "price_out": 0}
        Endpoint.objects.get_or_create(project=project, name=name, defaults=given)
    split = Split.objects.of(project).filter(name=ROWS, rows_count__gt=0).first()
    if split is None:
        params = {"kind": "eval_rows", "upload": _stored(project, ROWS), "name": ROWS}
        run = launch(project=project, kind="import", params=params, user=user)
        drive(run)
        split = Split.objects.get(run=run)
    if not split.checks.filter(ready=True).exists():
        params = {"split": str(split.pk), "upload": _stored(project, TRAINING)}
        drive(launch(project=project, kind="contamination", params=params, user=user))
    if not Evaluation.objects.filter(split=split).exists():
        asked = {"models": [BASE, TUNED], "split": str(split.pk), "family": "aws"}
        drive(launch(project=project, kind="evaluate", params=asked, user=user))
        access = Access(user, project, Role.ADMIN, SCOPES_OF_ROLE[Role.ADMIN])
        pin_baseline(access=access, model=EvaluatedModel.objects.get(evaluation__split=split, name=BASE))
        say("  evaluation of two scripted models: page Evaluations")


def _stored(project: Project, name: str) -> str:
    with (FOLDER / name).open("rb") as file:
        return store_upload(project=project, file=File(file), name=name)
