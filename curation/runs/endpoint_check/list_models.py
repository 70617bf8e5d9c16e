"""The run kind `served`: a worker lists the models of a server that wants a key. Only workers have keys."""

from collections.abc import Iterable, Sequence
from typing import Literal

from curation.llm.endpoints.check import check_base_url
from curation.llm.endpoints.discover import check_key, served_models, served_with_key
from curation.projects.access import Access
from curation.projects.models import Project, Scope
from curation.runs.endpoint_check.start import wait_for
from curation.runs.kinds import Estimate, Json, Kind, PlannedItem, StageOf, WorkContext, Write
from curation.runs.launch import launch
from curation.runs.models import ENDED, Item, Run
from curation.web.problems import Problem, Unavailable
from curation.web.refusals import all_checks
from curation.web.schemas import StrictModel


class ServedParams(StrictModel):
    api_base: str
    api_key_env: str
    key_style: Literal["", "bearer", "azure", "anthropic"] = ""
    api_version: str = ""


class ServedStage(StageOf[ServedParams]):
    name = "list"
    queue = "llm"

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        yield PlannedItem("list")

    def work(self, context: WorkContext, item: Item) -> Write:
        params = self._params
        found: Json = {"models": [], "error": ""}
        try:
            models = served_with_key(
                api_base=params.api_base,
                variable=params.api_key_env,
                project=context.run.project.slug,
                style=params.key_style,
                api_version=params.api_version,
            )
            found["models"] = list(models)
        except Problem as problem:
            found["error"] = problem.detail

        def write() -> Json:
            Run.objects.filter(pk=context.run.pk).update(result=found)
            return {"models": len(found["models"])}

        return write


class ServedRun(Kind[ServedParams]):
    name = "served"
    title = "List of a server's models"
    tells_of_samples = False
    params = ServedParams
    scope = Scope.ADMIN
    launch_page = ""

    def stages(self, params: ServedParams) -> Sequence[ServedStage]:
        return [ServedStage(params)]

    def check(self, project: Project, params: ServedParams) -> None:
        with all_checks() as check:
            with check():
                check_base_url(params.api_base)
            with check():
                check_key(variable=params.api_key_env, api_base=params.api_base, project=project.slug)

    def estimate(self, project: Project, params: ServedParams) -> Estimate:
        return Estimate(items=1, notes=("Listing models costs nothing.",))


def list_served(
    *, access: Access, api_base: str, api_key_env: str, key_style: str = "", api_version: str = ""
) -> tuple[str, ...]:
    """Return the models that the server lists: asked from here without a key, else by a worker, as a run.

    Raises `Invalid` for the address or variable, `Unavailable` if the server or the worker does not answer.
    """
    access.require(Scope.ADMIN)
    if not api_key_env:
        return served_models(api_base=api_base, style=key_style, api_version=api_version)
    params = {"api_base": api_base, "api_key_env": api_key_env, "key_style": key_style, "api_version": api_version}
    run = wait_for(launch(project=access.project, kind="served", params=params, user=access.user))
    if run.state not in ENDED:
        raise Unavailable(
            f"No worker has listed the models yet. Run {run.pk} does it when a worker is free: try again then, or "
            "enter the model's name yourself.",
            code="model_server",
        )
    if reason := run.result.get("error", run.error or "The list was stopped."):
        raise Unavailable(reason, code="model_server")
    return tuple(run.result["models"])
