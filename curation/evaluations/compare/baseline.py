"""The baseline of a split: the pinned model that all others are compared with, to flag regressions."""

from django.db import transaction

from curation.evaluations.compare.compare import MetricChange, changes
from curation.evaluations.compare.pairs import paired
from curation.evaluations.metrics import STATIC
from curation.evaluations.models import EvaluatedModel, Evaluation, EvaluationKind, Split
from curation.projects.access import Access
from curation.projects.audit import record
from curation.projects.models import Scope
from curation.runs.kinds import Json
from curation.runs.models import RunState
from curation.web.problems import Invalid

# A drop in one of these is a regression. Latency depends on the server, length on taste.
WATCHED = [metric for metric in STATIC if metric.name in {"xtr", "exact", "svc", "op_token", "exact_shell"}]


def pin_baseline(*, access: Access, model: EvaluatedModel) -> Split:
    """Make the model its split's baseline and compare every evaluation of the split with it."""
    access.require(Scope.RUN)
    split = model.evaluation.split
    if model.evaluation.kind != EvaluationKind.STATIC:
        raise Invalid("Only a model of a static screen can be a baseline.", code="live")
    if split is None or model.evaluation.state != RunState.SUCCEEDED:
        raise Invalid("Only a model of an evaluation that has ended can be a baseline.", code="not_ended")
    with transaction.atomic():
        split.baseline = model
        split.save(update_fields=["baseline"])
        subject = f"{split.name}: {model.name}"
        record(actor=access.user, project=split.project, action="baseline.pin", subject=subject)
        ended = Evaluation.objects.filter(split=split, run__state=RunState.SUCCEEDED)
        for evaluation in ended.select_related("split__baseline"):
            compare_with_baseline(evaluation)
    return split


def unpin_baseline(*, access: Access, split: Split) -> None:
    access.require(Scope.RUN)
    with transaction.atomic():
        Split.objects.filter(pk=split.pk).update(baseline=None)
        EvaluatedModel.objects.filter(evaluation__split=split).update(against={}, regressed=False)
        record(actor=access.user, project=split.project, action="baseline.unpin", subject=split.name)


def compare_with_baseline(evaluation: Evaluation) -> None:
    """Compare each model of the evaluation with the baseline of its split, if one is pinned."""
    split = evaluation.split
    baseline = split.baseline if split is not None else None
    for model in evaluation.models.select_related("evaluation"):
        against = _against(baseline, model) if baseline is not None and baseline.pk != model.pk else {}
        worse = bool(against.get("worse"))
        EvaluatedModel.objects.filter(pk=model.pk).update(against=against, regressed=worse)


def _against(baseline: EvaluatedModel, model: EvaluatedModel) -> Json:
    """`worse` names the watched metrics whose interval is below 0. Empty without a common row."""
    try:
        pairs, _ = paired(baseline, model)
    except Invalid:
        return {}
    found = changes(pairs, WATCHED)
    return {
        "evaluation": str(baseline.evaluation_id),
        "model": baseline.name,
        "rows": len(pairs),
        "metrics": {change.name: _as_json(change) for change in found},
        "worse": [change.name for change in found if change.change.interval.high < 0],
    }


def _as_json(change: MetricChange) -> Json:
    return {
        "delta": round(change.change.delta, 4),
        "low": round(change.change.interval.low, 4),
        "high": round(change.change.interval.high, 4),
        "said": change.said.value,
    }
