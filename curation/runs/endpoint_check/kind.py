"""The run kind `test`: a worker makes one small call to an endpoint."""

from collections.abc import Iterable, Sequence

from pydantic import BaseModel, ConfigDict

from curation.llm.client.completion import Target
from curation.llm.client.gateway import target_of
from curation.llm.models import Endpoint
from curation.projects.models import Project
from curation.runs.calls.ask import short_request
from curation.runs.kinds import Estimate, ItemFailed, Json, Kind, LlmContext, PlannedItem, Write
from curation.runs.models import Item, Run
from curation.web.problems import Invalid


class TestParams(BaseModel):
    """`model` is the endpoint's name."""

    model_config = ConfigDict(extra="forbid")
    __test__ = False

    model: str


class TestStage:
    name = "test"
    queue = "llm"
    most_open = 1
    __test__ = False

    def __init__(self, params: TestParams) -> None:
        self._params = params

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        yield PlannedItem("test")

    def targets(self, run: Run) -> Sequence[Target]:
        return [_target(run.project, self._params.model)]

    def load(self, run: Run, items: Sequence[Item]) -> dict[int, Target]:
        return {item.pk: _target(run.project, self._params.model) for item in items}

    async def work(self, context: LlmContext, item: Item, job: Target) -> Write:
        """Make one call, without the cache and without retries, and keep the endpoint's exact error."""
        try:
            said = (await context.ask(item, job, short_request(), fresh=True, tries=1)).completion
        except ItemFailed as failed:
            return _result(context.run, {"ok": False, "error": str(failed)})
        cost = None if said.cost is None else f"{said.cost:f}"
        figures: Json = {"latency_ms": said.latency_ms, "tokens_in": said.tokens_in, "tokens_out": said.tokens_out}
        return _result(context.run, {"ok": True, **figures, "cost": cost, "text": said.text[:500], "error": None})


def _target(project: Project, name: str) -> Target:
    endpoint = Endpoint.objects.of(project).filter(name=name).first()
    if endpoint is None:
        raise Invalid(f"There is no model {name!r} in this project.", code="unknown_model")
    return target_of(endpoint)


def _result(run: Run, found: Json) -> Write:
    empty: Json = dict.fromkeys(("latency_ms", "tokens_in", "tokens_out", "cost", "text", "error"))

    def write() -> Json:
        Run.objects.filter(pk=run.pk).update(result={**empty, **found})
        return found

    return write


class TestRun(Kind[TestParams]):
    name = "test"
    title = "Test of a model endpoint"
    params = TestParams
    feeds_others = False
    launch_page = ""
    __test__ = False

    def stages(self, params: TestParams) -> Sequence[TestStage]:
        return [TestStage(params)]

    def check(self, project: Project, params: TestParams) -> None:
        _target(project, params.model)

    def estimate(self, project: Project, params: TestParams) -> Estimate:
        return Estimate(items=1, calls=1, tokens_in=10)
