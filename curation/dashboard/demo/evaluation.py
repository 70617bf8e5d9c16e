"""The demo's evaluation: two scripted models on a small hand-written split, checked for contamination first."""

from curation.dashboard.demo.builder import Builder
from curation.evaluations.compare.baseline import pin_baseline
from curation.evaluations.models import EvaluatedModel, Evaluation, Split

ROWS, TRAINING = "eval_rows.jsonl", "eval_training.jsonl"
BASE, TUNED = "scripted-base-cli", "scripted-tuned-cli"


def make_demo_evaluation(build: Builder) -> None:
    """Add the missing parts: the models, the split, its contamination check, the evaluation, the pinned baseline."""
    build.add_scripted_models((BASE, TUNED), price_in=0, price_out=0)
    split = Split.objects.of(build.project).filter(name=ROWS, rows_count__gt=0).first()
    if split is None:
        split = Split.objects.get(run=build.import_rows("eval_rows", ROWS))
    if not split.checks.filter(ready=True).exists():
        build.run("contamination", split=str(split.pk), upload=build.upload(TRAINING))
    if not Evaluation.objects.filter(split=split).exists():
        build.run("evaluate", models=[BASE, TUNED], split=str(split.pk), family="aws")
        pin_baseline(access=build.access, model=EvaluatedModel.objects.get(evaluation__split=split, name=BASE))
        build.say("  Evaluation of two scripted models: see the page Evaluations")
