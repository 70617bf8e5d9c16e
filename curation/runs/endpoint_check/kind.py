"""The run kind `test`: a worker makes a small call to an endpoint, and a second one with a JSON schema."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import orjson
from pydantic import BaseModel, ConfigDict

from curation.llm.client.completion import Target
from curation.llm.client.errors import Refused
from curation.llm.client.gateway import target_of
from curation.llm.models import Endpoint
from curation.projects.models import Project
from curation.runs.calls.ask import short_request
from curation.runs.kinds import Estimate, ItemFailed, Json, Kind, LlmContext, PlannedItem, Write
from curation.runs.models import Item, Run
from curation.web.problems import Invalid

READY_FORMAT: dict[str, object] = {
    "type": "json_schema",
    "json_schema": {
        "name": "ready",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"word": {"type": "string"}},
            "required": ["word"],
            "additionalProperties": False,
        },
    },
}


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
        takes_schema = None if job.model.startswith("scripted/") else await self._takes_schema(context, item, job)
        cost = None if said.cost is None else f"{said.cost:f}"
        figures: Json = {"latency_ms": said.latency_ms, "tokens_in": said.tokens_in, "tokens_out": said.tokens_out}
        more: Json = {"cost": cost, "text": said.text[:500], "error": None, "takes_json_schema": takes_schema}
        return _result(context.run, {"ok": True, **figures, **more})

    async def _takes_schema(self, context: LlmContext, item: Item, job: Target) -> bool | None:
        """Make a second call with a JSON schema. Return whether the answer follows it, and None if nothing is known.

        A refusal says no, as does an answer in another form: some servers ignore what they do not know.
        """
        params = {key: value for key, value in job.params.items() if key != "response_format"}
        request = replace(short_request(" (as JSON)"), schema=READY_FORMAT)
        try:
            target = replace(job, params={**params, "takes_json_schema": True})
            said = (await context.ask(item, target, request, fresh=True, tries=1)).completion
        except ItemFailed as failed:
            return False if isinstance(failed.__cause__, Refused) else None
        if said.finish_reason == "length":
            return None
        try:
            return isinstance(orjson.loads(said.text).get("word"), str)
        except (orjson.JSONDecodeError, AttributeError):
            return False


def _target(project: Project, name: str) -> Target:
    endpoint = Endpoint.objects.of(project).filter(name=name).first()
    if endpoint is None:
        raise Invalid(f"There is no model {name!r} in this project.", code="unknown_model")
    return target_of(endpoint)


def _result(run: Run, found: Json) -> Write:
    empty: Json = dict.fromkeys(("latency_ms", "tokens_in", "tokens_out", "cost", "text", "error", "takes_json_schema"))

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
        return Estimate(items=1, calls=2, tokens_in=20)
