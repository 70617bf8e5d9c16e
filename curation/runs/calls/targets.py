"""The model endpoints that a run names, and what its requests are sent with."""

from collections.abc import Mapping, Sequence

from curation.llm.client.completion import Target
from curation.llm.client.gateway import target_of
from curation.llm.models import Endpoint
from curation.projects.models import Project
from curation.runs.models import Run
from curation.web.problems import FieldError, Invalid


def call_params(target: Target, defaults: Mapping[str, object]) -> dict[str, object]:
    """What a request is sent with. What an endpoint was given for itself wins over the project's defaults: a reasoning
    model needs its own token limit and may refuse any temperature but one."""
    return {**defaults, **target.params}


def targets_named(project: Project, names: Sequence[str], place: str) -> list[Target]:
    """The endpoints with these names, in their order; `Invalid` names the ones that are not there."""
    found = {endpoint.name: endpoint for endpoint in Endpoint.objects.of(project).filter(name__in=names)}
    missing = [name for name in names if name not in found]
    if missing:
        raise Invalid(
            f"There is no model {', '.join(missing)} in this project.",
            code="unknown_model",
            errors=[FieldError(f"params.{place}", f"unknown model {name}") for name in missing],
        )
    return [target_of(found[name]) for name in names]


def run_target(run: Run, name: str) -> Target:
    return targets_named(run.project, [name], "model")[0]
