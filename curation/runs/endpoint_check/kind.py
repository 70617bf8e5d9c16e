"""The run kind `test`: a worker makes a small call to an endpoint, and one each with a stream, a schema and a tool."""

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import replace

import orjson

from curation.llm.client.completion import Completion, CompletionRequest, EndpointTarget
from curation.llm.client.errors import Refused, Transient
from curation.llm.client.gateway import listed_prices, target_of
from curation.llm.endpoints.settings_endpoints import endpoint_of
from curation.llm.models import Endpoint
from curation.projects.models import Project
from curation.runs.calls.ask import short_request
from curation.runs.calls.targets import call_params
from curation.runs.kinds import Estimate, ItemFailed, Json, Kind, LlmContext, PlannedItem, StageOf, Write
from curation.runs.models import Item, Run
from curation.web.problems import Invalid
from curation.web.schemas import StrictModel
from curation.web.text.figures import exact_money

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

READY_TOOL: dict[str, object] = {
    "type": "function",
    "function": {
        "name": "report_ready",
        "description": "Report that you are ready.",
        "parameters": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
    },
}
DEFAULTS: dict[str, object] = {"temperature": 0.7}
TOOL_QUESTION = "Call the tool report_ready with the word: ready"
FIGURES = (
    *("latency_ms", "first_token_ms", "tokens_in", "tokens_out", "cost", "text", "error"),
    *("streams", "takes_json_schema", "takes_tools", "takes_max_tokens"),
)
STREAM_HINT = "The server answers only if the answer is streamed: set `stream` in the parameters of the model."
LIMIT_HINT = "The server wants `max_completion_tokens`: set `takes_max_tokens` to false in the parameters of the model."
# How else a server may want a call, in the order in which it is tried.
WAYS: tuple[tuple[dict[str, bool], str], ...] = (
    ({"stream": True}, STREAM_HINT),
    ({"takes_max_tokens": False}, LIMIT_HINT),
    ({"stream": True, "takes_max_tokens": False}, f"{STREAM_HINT} {LIMIT_HINT}"),
)


class TestParams(StrictModel):
    """`model` is the endpoint's name."""

    __test__ = False

    model: str


class TestStage(StageOf[TestParams]):
    name = "test"
    queue = "llm"
    most_open = 1
    __test__ = False

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        yield PlannedItem("test")

    def targets(self, run: Run) -> Sequence[EndpointTarget]:
        return [_target(run.project, self._params.model)]

    def load(self, run: Run, items: Sequence[Item]) -> dict[int, EndpointTarget]:
        return {item.pk: _target(run.project, self._params.model) for item in items}

    async def work(self, context: LlmContext, item: Item, job: EndpointTarget) -> Write:
        """Make one call, without the cache and without retries, and keep the endpoint's exact error. Another way in
        which the server answers is used in the other trials."""
        try:
            said = await _ask(context, item, job, short_request())
        except ItemFailed as failed:
            found, way = await self._other_way(context, item, job, failed)
            if way is None:
                return _result(context.run, found)
        else:
            way = {}
            cost = None if said.cost is None else exact_money(said.cost)
            found = {"ok": True, "latency_ms": said.latency_ms, "first_token_ms": said.first_token_ms, "cost": cost}
            found |= {"tokens_in": said.tokens_in, "tokens_out": said.tokens_out, "text": said.text[:500]}
            if said.first_token_ms is not None:
                found["streams"] = True
        if job.model.startswith("scripted/"):
            return _result(context.run, found)
        job = replace(job, params={**job.params, **way})
        trials = {"takes_json_schema": self._takes_schema, "takes_tools": self._takes_tools}
        if "streams" not in found:
            trials["streams"] = self._streams
        tried = await asyncio.gather(*(_unless_refused(trial(context, item, job)) for trial in trials.values()))
        found |= zip(trials, tried, strict=True)
        taken = {name: found[name] for name in ("takes_json_schema", "takes_tools") if found[name] is not None}
        return _result(context.run, {**found, "params": {**way, **taken}, "prices": listed_prices(job)})

    async def _other_way(
        self, context: LlmContext, item: Item, job: EndpointTarget, failed: ItemFailed
    ) -> tuple[Json, dict[str, bool] | None]:
        """Return the result of a failed call, and the parameters with which the endpoint answers, or None.

        Servers that only stream refuse with any status, some with one of their own failures.
        """
        found: Json = {"ok": False, "error": str(failed)}
        if type(failed.__cause__) not in (Refused, Transient):
            return found, None
        for way, hint in WAYS:
            if any(name in job.params for name in way):
                continue
            target = replace(job, params={**job.params, **way})
            try:
                said = await _ask(context, item, target, short_request(f" ({', '.join(way)})"))
            except ItemFailed as other:
                if "stream" in way and type(other.__cause__) is Refused:
                    found["streams"] = False
                continue
            found["error"] = f"{failed}. {hint}"
            if "stream" in way:
                found["streams"] = said.first_token_ms is not None
            if "takes_max_tokens" in way:
                found["takes_max_tokens"] = False
            return found, dict(way)
        return found, None

    async def _streams(self, context: LlmContext, item: Item, job: EndpointTarget) -> bool | None:
        """Return whether the endpoint streams an answer. The three trials return None if nothing is known."""
        target = replace(job, params={**job.params, "stream": True})
        said = await _ask(context, item, target, short_request(" (streamed)"))
        return said.first_token_ms is not None

    async def _takes_schema(self, context: LlmContext, item: Item, job: EndpointTarget) -> bool | None:
        """Return whether an answer follows a JSON schema.

        A refusal says no, as does an answer in another form: some servers ignore unknown parameters.
        """
        params = {key: value for key, value in job.params.items() if key != "response_format"}
        request = replace(short_request(" (as JSON)"), schema=READY_FORMAT)
        said = await _ask(context, item, replace(job, params={**params, "takes_json_schema": True}), request)
        if said.finish_reason == "length":
            return None
        try:
            return isinstance(orjson.loads(said.text).get("word"), str)
        except (orjson.JSONDecodeError, AttributeError):
            return False

    async def _takes_tools(self, context: LlmContext, item: Item, job: EndpointTarget) -> bool | None:
        """Return whether the model calls a tool that it is asked to call."""
        asked = replace(short_request(), messages=[{"role": "user", "content": TOOL_QUESTION}], tools=[READY_TOOL])
        said = await _ask(context, item, replace(job, params={**job.params, "takes_tools": True}), asked)
        return None if said.finish_reason == "length" else bool(said.tool_calls)


async def _unless_refused(trial: Awaitable[bool | None]) -> bool | None:
    """Return the result of a trial: false if its call was refused, None if it failed otherwise."""
    try:
        return await trial
    except ItemFailed as failed:
        return False if type(failed.__cause__) is Refused else None


async def _ask(context: LlmContext, item: Item, target: EndpointTarget, request: CompletionRequest) -> Completion:
    """Ask as the stages of runs do: with a default that the endpoint's own parameters replace."""
    params = {**call_params(target, DEFAULTS), **request.params}
    return (await context.ask(item, target, replace(request, params=params), fresh=True, tries=1)).completion


def _target(project: Project, name: str) -> EndpointTarget:
    endpoint = Endpoint.objects.of(project).filter(name=name).first()
    if endpoint is None:
        raise Invalid(f"There is no model {name!r} in this project.", code="unknown_model")
    return target_of(endpoint)


def _result(run: Run, found: Json) -> Write:
    def write() -> Json:
        known = {"version": run.result["version"], "params": {}}
        Run.objects.filter(pk=run.pk).update(result={**dict.fromkeys(FIGURES), **known, **found})
        return found

    return write


class TestRun(Kind[TestParams]):
    name = "test"
    title = "Test of a model endpoint"
    tells_of_samples = False
    params = TestParams
    feeds_others = False
    launch_page = ""
    __test__ = False

    def stages(self, params: TestParams) -> Sequence[TestStage]:
        return [TestStage(params)]

    def check(self, project: Project, params: TestParams) -> None:
        _target(project, params.model)

    def begin(self, run: Run, params: TestParams) -> Json:
        """The version of the endpoint that is tested: the findings are true of that one."""
        return {"version": endpoint_of(run.project, params.model).version}

    def estimate(self, project: Project, params: TestParams) -> Estimate:
        return Estimate(items=1, calls=4, tokens_in=100)
