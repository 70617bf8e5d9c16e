"""The work of a run of kind `harbor`: tasks, agents, models and a provider, and the keys that Harbor gets."""

import hashlib
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from django.conf import settings
from django.utils.text import slugify
from pydantic import Field

from curation.imports.sources.allowed_sources import locate
from curation.llm.client.completion import EndpointTarget
from curation.llm.endpoints.keys import OWN_CREDENTIALS, why_refused
from curation.projects.models import Project
from curation.runs.calls.targets import targets_named
from curation.runs.kinds import ItemFailed
from curation.runs.models import Run
from curation.scenarios.bundles.harbor import stored_task
from curation.scenarios.filters import ScenarioFilter
from curation.scenarios.models import Family, Scenario, ScenarioQuerySet
from curation.web.problems import FieldError, Invalid
from curation.web.refusals import all_checks
from curation.web.schemas import StrictModel
from sandbox.harbor.command import Agent, JobPlan
from sandbox.harbor.providers import SandboxProvider, named

# Agents without a model: they apply the reference solution, or do nothing.
WITHOUT_MODEL = frozenset({"oracle", "nop"})
SCENARIOS = "Harbor scenarios"
_DATASET = re.compile(r"[\w.-]+(/[\w.-]+)?(@[\w.:-]+)?")


class HarborParams(StrictModel):
    """Each task is run `attempts` times by each agent with each model."""

    tasks: str = Field(
        "",
        max_length=1000,
        examples=["/srv/tasks"],
        description="A folder of Harbor tasks below IMPORT_FOLDERS, or a dataset of Harbor's registry such as "
        "`terminal-bench@2.0`. Empty: admitted scenarios of the family Harbor.",
    )
    filter: dict[str, Any] = Field({}, description="Which of the scenarios.")
    agents: list[Annotated[str, Field(pattern=r"^[\w.:-]{1,100}$")]] = Field(
        ["terminus-2"], min_length=1, max_length=20, description="Harbor's agents, one per line."
    )
    models: list[str] = Field([], max_length=20, description="Models of this project. `oracle` and `nop` need none.")
    attempts: Annotated[int, Field(ge=1, le=64)] = Field(1, description="Trials of each task.")
    provider: str = Field("docker", max_length=40, description="Where sandboxes run.")
    concurrent: Annotated[int, Field(ge=1, le=1000)] = Field(4, description="Trials at once.")
    agent_options: dict[str, Any] = Field({}, description="Options of the agents, as JSON.")

    @property
    def dataset(self) -> str:
        return "" if self.tasks.startswith("/") else self.tasks

    @property
    def task_set(self) -> str:
        """The name of the set of tasks: of a dataset, of a folder, or that of scenarios."""
        return self.dataset or Path(self.tasks).name or SCENARIOS

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Each agent with each model; those that need none with no model."""
        return [
            (agent, model)
            for agent in dict.fromkeys(self.agents)
            for model in ([""] if agent in WITHOUT_MODEL else dict.fromkeys(self.models))
        ]


def check_plan(project: Project, params: HarborParams) -> None:
    """Raise `Invalid` with all that is known to be wrong before the launch."""
    with all_checks() as check:
        with check():
            if not settings.HARBOR_COMMAND:
                raise Invalid(
                    "This server runs no Harbor: its operator has not set HARBOR_COMMAND.", code="harbor_missing"
                )
        with check():
            provider_of(project, params.provider)
        with check():
            _check_tasks(project, params)
        with check():
            _check_models(project, params)


def provider_of(project: Project, name: str) -> SandboxProvider:
    found = named(settings.HARBOR_PROVIDERS, name, project.slug)
    if found is None:
        reason = f"This server does not let this project use the provider {name!r} (HARBOR_PROVIDERS)."
        raise Invalid.at("params.provider", reason, code="harbor_provider")
    return found


def matching_tasks(project: Project, params: HarborParams) -> ScenarioQuerySet:
    """The admitted Harbor tasks of the project that match the filter."""
    rows = Scenario.objects.of(project).admitted().filter(family=Family.HARBOR)
    return ScenarioFilter.from_json(params.filter, path="params.filter").apply(rows)


def count_tasks(project: Project, params: HarborParams) -> int | None:
    """Return the number of tasks; None for a dataset, which only Harbor knows."""
    if params.dataset:
        return None
    return len(task_folders(params)) if params.tasks else matching_tasks(project, params).count()


def _write_scenarios(run: Run, params: HarborParams, folder: Path) -> list[Path]:
    """Write the tasks into the job's folder, once: a job that is resumed has the tasks that it began with."""
    root = folder / "tasks"
    if not root.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=folder))
        for row in matching_tasks(run.project, params).with_bundle().order_by("id").iterator(100):
            stored_task(row.text.bundle).write(made / f"{slugify(row.name)[:40]}-{row.pk}")
        made.rename(root)
    return sorted(root.iterdir())


def task_folders(params: HarborParams) -> list[Path]:
    """Return the folders of tasks in the folder of the parameters, or that folder itself. Raises `Invalid`."""
    try:
        folder = locate(params.tasks).path
    except Invalid as refused:
        raise Invalid.at("params.tasks", refused.detail) from None
    inside = [folder, *sorted(folder.iterdir())] if folder is not None and folder.is_dir() else []
    if found := [path for path in inside if (path / "task.toml").is_file()]:
        return found
    raise Invalid.at("params.tasks", f"There is no Harbor task in {params.tasks}: a task is a folder with task.toml.")


def job_plan(run: Run, params: HarborParams, folder: Path) -> tuple[JobPlan, dict[str, str]]:
    """Return the plan of Harbor's job in a folder, and the secret variables that it gets. Raises `ItemFailed`."""
    targets = {target.name: target for target in targets_named(run.project, params.models, "models")}
    provider = provider_of(run.project, params.provider)
    secrets = {name: _value_of(name) for name in provider.variables}
    agents = []
    for agent, model in params.pairs:
        if not model:
            agents.append(Agent(agent, options=params.agent_options))
            continue
        target = targets[model]
        variable = _variable(run, model)
        secrets[variable] = _key_of(target)
        agents.append(Agent(agent, target.model, target.api_base, variable, params.agent_options))
    tasks: list[Path] = []
    if not params.dataset:
        tasks = task_folders(params) if params.tasks else _write_scenarios(run, params, folder)
    plan = JobPlan(
        agents,
        tasks=tasks,
        datasets=[params.dataset] if params.dataset else [],
        attempts=params.attempts,
        concurrent=params.concurrent,
        provider=provider.name,
    )
    return plan, secrets


def target_of_trial(config: Mapping[str, Any], targets: Sequence[EndpointTarget]) -> EndpointTarget | None:
    """Return the model that a trial's agent was configured with."""
    given = config.get("agent") or {}
    wanted = (given.get("model_name") or "", given.get("base_url") or "")
    return next((target for target in targets if (target.model, target.api_base) == wanted), None)


def _check_tasks(project: Project, params: HarborParams) -> None:
    if params.tasks and params.filter:
        raise Invalid.at("params.filter", "A filter is for scenarios: leave `tasks` empty, or the filter.")
    if params.dataset and not _DATASET.fullmatch(params.dataset):
        reason = "Give an absolute folder, or the name of a dataset such as terminal-bench@2.0."
        raise Invalid.at("params.tasks", reason)
    if count_tasks(project, params) == 0:
        reason = "No admitted scenario of the family Harbor matches. Name a folder or dataset, or gate such scenarios."
        raise Invalid.at("params.tasks", reason, code="no_scenarios")


def _check_models(project: Project, params: HarborParams) -> None:
    targets = targets_named(project, params.models, "models")
    reasons = [reason for target in targets if (reason := _why_not(target))]
    if not params.models and set(params.agents) - WITHOUT_MODEL:
        reasons.append(f"Choose a model for {', '.join(sorted(set(params.agents) - WITHOUT_MODEL))}.")
    if reasons:
        raise Invalid(" ".join(reasons), errors=[FieldError("params.models", reason) for reason in reasons])


def _why_not(target: EndpointTarget) -> str:
    """Say why Harbor cannot use a model, or return ''."""
    if target.model.startswith("scripted/"):
        return f"{target.name} is a scripted model of this server, which Harbor's agents cannot call."
    if target.model.partition("/")[0] in OWN_CREDENTIALS:
        return f"{target.name} is called with credentials of the worker's machine, which Harbor does not get."
    refused = why_refused(
        variable=target.api_key_env, model=target.model, api_base=target.api_base, project=target.project
    )
    return f"{target.name}: {refused}" if refused else ""


def _variable(run: Run, model: str) -> str:
    """Return the variable that has a model's key in Harbor's process. No task can guess it and ask for its value."""
    made = hashlib.sha256(f"{settings.SECRET_KEY}:{run.pk}:{model}".encode()).hexdigest()
    return f"HARBOR_KEY_{made[:32].upper()}"


def _key_of(target: EndpointTarget) -> str:
    if reason := _why_not(target):
        raise ItemFailed(reason)
    # A server without keys is sent a word, as by our own calls: its client library insists on one.
    return _value_of(target.api_key_env) if target.api_key_env else "none"


def _value_of(variable: str) -> str:
    value = os.environ.get(variable, "").strip()
    if not value:
        raise ItemFailed(f"The environment variable {variable} is not set on this worker.")
    return value
