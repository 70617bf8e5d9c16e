"""The conclusion of a comparison, in a few sentences."""

from curation.evaluations.compare.compare import MetricChange, ModelComparison
from curation.web.text.figures import counted
from judging.statistics.paired import PairedVerdict

ADVERBS = {PairedVerdict.LIKELY: "likely", PairedVerdict.CLEAR: "clearly"}


def conclusion(found: ModelComparison) -> str:
    """Say whether the later model is better at the decisive metric, in which tiers, and what else changed. Only the
    verdicts of the page decide."""
    decisive = next(change for change in found.metrics if change.name == found.scale.decisive)
    sentences = [_verdict(found, decisive)]
    if len(found.tiers) > 1:
        tiers = [
            f"{tier.tier or 'no tier'} ({ADVERBS[change.said]} {_worth(change)}, {_change(change)})"
            for tier in found.tiers
            for change in tier.metrics
            if change.name == decisive.name and change.is_known
        ]
        sentences += [f"By tier: {', '.join(tiers)}."] if tiers else []
    for better, word in ((True, "better"), (False, "worse")):
        others = [
            f"{change.metric.label.lower()} ({change.said}, {_change(change)})"
            for change in found.metrics
            if change is not decisive and change.is_known and change.better is better
        ]
        sentences += [f"Also {word}: {', '.join(others)}."] if others else []
    return " ".join(sentences)


def missing_for_clear(change: MetricChange) -> str:
    """How many more tasks would make the change clear, in words; empty if it is clear, or if there is no change."""
    missing = change.tasks_missing
    return "" if not missing else f"about {counted(missing, 'more task')}"


def _verdict(found: ModelComparison, decisive: MetricChange) -> str:
    before, after = _names(found)
    unit, what = decisive.metric.unit, decisive.metric.label.lower()
    figures = (
        f"{what} {unit.amount(decisive.before)} → {unit.amount(decisive.after)} ({_change(decisive)}, 95 % interval "
        f"{decisive.interval})"
    )
    if found.missing:
        are = f"{counted(found.missing, found.scale.noun)} {'has' if found.missing == 1 else 'have'}"
        return (
            f"{after} and {before} cannot be compared yet: {are} no result on one side. Of what both have: {figures}."
        )
    if decisive.said == PairedVerdict.EQUIVALENT:
        return f"{after} and {before} are {decisive.verdict}: {figures}."
    if not decisive.said.is_different:
        missing = missing_for_clear(decisive)
        needed = f" A change of this size would need {missing} to be clear." if missing else ""
        return f"Whether {after} and {before} differ is not known: {figures}.{needed}"
    return f"{after} is {ADVERBS[decisive.said]} {_worth(decisive)} than {before}: {figures}."


def _worth(change: MetricChange) -> str:
    return "better" if change.better else "worse"


def _change(change: MetricChange) -> str:
    return change.metric.unit.change(change.change.delta)


def _names(found: ModelComparison) -> tuple[str, str]:
    models = (found.before, found.after)
    if found.before.name != found.after.name:
        return found.before.name, found.after.name
    first, second = (f"{model.name} (evaluation {model.evaluation_id})" for model in models)
    return first, second
