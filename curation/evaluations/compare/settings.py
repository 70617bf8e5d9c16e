"""The settings of launches that change what a model can achieve, where they are not the same."""

from collections.abc import Sequence

from curation.evaluations.models import EvaluatedModel, EvaluationKind

# Of live episodes, besides those of the calls.
LIVE_SETTINGS = ("environment", "reset_template", "max_steps", "hints", "tools", "action_field")


def differing_settings(models: Sequence[EvaluatedModel]) -> dict[str, list[object]]:
    """Return by name the values of each setting that the models do not share, in their order."""
    launches = [model.evaluation.params for model in models]
    live = any(model.evaluation.kind == EvaluationKind.LIVE for model in models)
    # Launches of earlier versions do not have all of them.
    names = [name for name in LIVE_SETTINGS if live and all(name in params for params in launches)]
    settings = [
        {
            **{name: model.evaluation.params[name] for name in names},
            **model.call_params,
            "family": model.evaluation.family,
        }
        for model in models
    ]
    every = {name: [one.get(name) for one in settings] for one in settings for name in one}
    return {name: values for name, values in every.items() if any(value != values[0] for value in values)}


def setting_notes(before: EvaluatedModel, after: EvaluatedModel) -> list[str]:
    """A sentence about the settings of two launches that differ, if there are any."""
    differing = [
        name if any(isinstance(value, dict) for value in values) else f"{name} {' → '.join(map(str, values))}"
        for name, values in differing_settings([before, after]).items()
    ]
    if not differing:
        return []
    return [f"The two had different settings, which may be the cause of a difference: {', '.join(differing)}."]
