"""The baseline of a split: the pinned model that all others are compared with, to flag regressions."""

from django.db import transaction

from curation.evaluations.compare.compare import INCOMPLETE, MetricChange, changes
from curation.evaluations.compare.pairs import paired
from curation.evaluations.metrics import LIVE, STATIC
from curation.evaluations.missing import missing_pairs
from curation.evaluations.models import UPLIFT, EvaluatedModel, Evaluation, EvaluationKind, Split
from curation.projects.access import Access
from curation.projects.models import AuditEntry, Scope
from curation.runs.kinds import Json
from curation.runs.models import RunState
from curation.web.problems import Invalid
from judging.statistics.paired import PairedVerdict
from judging.statistics.paired_tests import holm

# A drop in one of these is a regression. Latency depends on the server, length on taste, and a summed reward may be
# earned by stalling.
WORSE = (PairedVerdict.LIKELY.value, PairedVerdict.CLEAR.value)
WATCHED = {
    EvaluationKind.STATIC.value: [
        metric for metric in STATIC if metric.name in {"xtr", "exact", "svc", "op_token", "exact_shell"}
    ],
    EvaluationKind.LIVE.value: [
        metric for metric in LIVE if metric.name in {"completed", "max_progress", "terminal_reward"}
    ],
}


def pin_baseline(*, access: Access, model: EvaluatedModel) -> Split:
    access.require(Scope.RUN)
    split = model.evaluation.split
    if split is None or model.evaluation.state != RunState.SUCCEEDED:
        raise Invalid("Only a model of an evaluation that has ended can be a baseline.", code="not_ended")
    if not EvaluatedModel.objects.usable().filter(pk=model.pk).exists():
        raise Invalid("A model of an uplift experiment was made to compare rows. It is no baseline.", code="uplift")
    with transaction.atomic():
        field = "live_baseline" if model.evaluation.kind == EvaluationKind.LIVE else "baseline"
        setattr(split, field, model)
        split.save(update_fields=[field])
        subject = f"{split.name}: {model.name}"
        AuditEntry.record(actor=access.user, project=split.project, action="baseline.pin", subject=subject)
        _compare_all(split, model.evaluation.kind)
    return split


def unpin_baseline(*, access: Access, split: Split, kind: str = EvaluationKind.STATIC) -> None:
    access.require(Scope.RUN)
    with transaction.atomic():
        field = "live_baseline" if kind == EvaluationKind.LIVE else "baseline"
        Split.objects.filter(pk=split.pk).update(**{field: None})
        compared = EvaluatedModel.objects.filter(evaluation__split=split, evaluation__kind=kind)
        compared.update(against={}, regressed=False)
        AuditEntry.record(actor=access.user, project=split.project, action="baseline.unpin", subject=split.name)


def compare_with_baseline(evaluation: Evaluation) -> None:
    """Compare the models of an evaluation that has ended; if one of them is the baseline, all others."""
    split = evaluation.split
    baseline = split.baseline_of(evaluation.kind) if split is not None else None
    _compare_models(evaluation)
    if split is not None and baseline is not None and baseline.evaluation_id == evaluation.pk:
        _compare_all(split, evaluation.kind)
    elif split is not None:
        _flag_regressions(split, evaluation.kind)


def _compare_all(split: Split, kind: str) -> None:
    ended = Evaluation.objects.filter(split=split, kind=kind, run__state=RunState.SUCCEEDED).exclude(run__kind=UPLIFT)
    for evaluation in ended.select_related("split__baseline", "split__live_baseline"):
        _compare_models(evaluation)
    _flag_regressions(split, kind)


def _compare_models(evaluation: Evaluation) -> None:
    split = evaluation.split
    baseline = split.baseline_of(evaluation.kind) if split is not None else None
    for model in evaluation.models.select_related("evaluation"):
        against = _against(baseline, model) if baseline is not None and baseline.pk != model.pk else {}
        EvaluatedModel.objects.filter(pk=model.pk).update(against=against, regressed=False)


def _flag_regressions(split: Split, kind: str) -> None:
    """Decide which metrics of all models of the split are below the baseline: they are on one leaderboard, so they are
    corrected together."""
    board = EvaluatedModel.objects.usable().filter(evaluation__split=split, evaluation__kind=kind).order_by("pk")
    models = [model for model in board if model.against]
    found = [metric for model in models for metric in model.against["metrics"].values()]
    ps = holm([metric["p"] for metric in found])
    # Comparisons of earlier versions have no test of equivalence.
    equal = holm([metric.get("p_equivalence", 1.0) for metric in found])
    for metric, corrected, same in zip(found, ps, equal, strict=True):
        said = PairedVerdict.at(corrected, same)
        metric |= {"p_corrected": round(corrected, 6), "said": said.within(metric.get("margin", ""))}
    for model in models:
        metrics = model.against["metrics"]
        if model.against.get("missing"):
            for metric in metrics.values():
                metric["said"] = INCOMPLETE
        model.against |= {"comparisons": len(found)}
        # In the order of the metrics: PostgreSQL keeps no order of keys.
        model.against["worse"] = [
            watched.name
            for watched in WATCHED[kind]
            if (metric := metrics.get(watched.name)) and metric["delta"] < 0 and metric["said"] in WORSE
        ]
        model.regressed = bool(model.against["worse"])
    EvaluatedModel.objects.bulk_update(models, ["against", "regressed"])


def _against(baseline: EvaluatedModel, model: EvaluatedModel) -> Json:
    """Empty without a common row. A verdict and `worse` follow with `_flag_regressions`."""
    try:
        pairs, _ = paired(baseline, model)
    except Invalid:
        return {}
    margin = baseline.evaluation.project.settings.evaluation.equivalent_within
    found = changes(pairs, WATCHED[model.evaluation.kind], margin=margin)
    return {
        "evaluation": str(baseline.evaluation_id),
        "model": baseline.name,
        "rows": len(pairs),
        "missing": missing_pairs(baseline, model),
        "metrics": {change.name: _as_json(change) for change in found},
    }


def _as_json(change: MetricChange) -> Json:
    return {
        "delta": round(change.change.delta, 4) + 0.0,
        "low": round(change.change.interval.low, 4) + 0.0,
        "high": round(change.change.interval.high, 4) + 0.0,
        "p": change.change.p,
        "p_equivalence": change.change.equivalence,
        "margin": change.margin_words,
    }
