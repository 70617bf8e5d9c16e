"""A kind of run for tests: a stage that asks a model one question per item, and a stage that counts the answers."""

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from curation.llm.client.completion import CompletionRequest, EndpointTarget
from curation.llm.client.gateway import target_of
from curation.llm.models import Endpoint
from curation.projects.models import Project
from curation.runs.engine.waiting import wake_due
from curation.runs.engine.worker import drive
from curation.runs.kinds import (
    MOST_OPEN_CALLS,
    Estimate,
    ItemFailed,
    Kind,
    LlmContext,
    PlannedItem,
    Stage,
    WorkContext,
    Write,
    register,
)
from curation.runs.launch import launch
from curation.runs.models import LIVE, Item, ItemState, Run
from curation.web.problems import Invalid
from tests.factories import make_endpoint, make_project
from tests.model_server import ModelServer

LONGEST = 30.0


class AskingParams(BaseModel):
    """`refuse`: an answer with this text fails its item, after it was paid for. `other`: every second item's model.
    `alike`: all items ask the same."""

    model_config = ConfigDict(extra="forbid")

    n: int = 3
    model: str = "judge-a"
    other: str = ""
    words: int = 4
    max_tokens: int = 50
    fresh: bool = False
    alike: bool = False
    refuse: str = ""


@dataclass
class Script:
    """Actions of the stages besides asking; tests change them."""

    plan_error: Exception | None = None
    load_error: Exception | None = None
    work_error: Exception | None = None
    unpriced: tuple[str, ...] = ()


SCRIPT = Script()


class AskStage:
    name = "ask"
    movable: ClassVar = True
    queue = "llm"
    most_open = MOST_OPEN_CALLS

    def __init__(self, params: AskingParams) -> None:
        self._params = params

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        for number in range(self._params.n):
            yield PlannedItem(str(number), number)

    def targets(self, run: Run) -> Sequence[EndpointTarget]:
        endpoint = Endpoint.objects.of(run.project).filter(name=self._params.model).first()
        if endpoint is None:
            raise Invalid(f"There is no model {self._params.model!r} in this project.")
        others = Endpoint.objects.of(run.project).filter(name=self._params.other)
        return [target_of(found) for found in (endpoint, *others)]

    def load(self, run: Run, items: Sequence[Item]) -> dict[int, EndpointTarget]:
        if SCRIPT.load_error:
            raise SCRIPT.load_error
        targets = self.targets(run)
        return {item.pk: targets[(item.target_id or 0) % len(targets)] for item in items}

    async def work(self, context: LlmContext, item: Item, job: EndpointTarget) -> Write:
        if SCRIPT.work_error:
            raise SCRIPT.work_error
        question = f"Question {'' if self._params.alike else item.key}: " + "word " * self._params.words
        request = CompletionRequest([{"role": "user", "content": question}], {"max_tokens": self._params.max_tokens})
        answered = await context.ask(item, job, request, fresh=self._params.fresh)
        said = answered.completion
        if self._params.refuse and self._params.refuse in said.text:
            raise ItemFailed("refused by the test")
        result = {"text": said.text, "thinking": said.thinking, "finish": said.finish_reason, "cached": answered.cached}
        result["by"] = os.getpid()
        return lambda: result


class CountStage:
    """One item per answer that there is when the stage is planned."""

    name = "count"
    queue = "default"

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        if SCRIPT.plan_error:
            raise SCRIPT.plan_error
        for key in Item.objects.filter(run=run, stage="ask", state=ItemState.DONE).values_list("key", flat=True):
            yield PlannedItem(key)

    def work(self, context: WorkContext, item: Item) -> Write:
        return lambda: {"counted": item.key}


class AskingRun(Kind[AskingParams]):
    name = "asking"
    title = "Asking"
    params = AskingParams
    launch_page = ""

    def stages(self, params: AskingParams) -> Sequence[Stage]:
        return [AskStage(params), CountStage()]

    def estimate(self, project: Project, params: AskingParams) -> Estimate:
        return Estimate(items=params.n, calls=params.n, unpriced=SCRIPT.unpriced)

    def finish(self, run: Run, params: AskingParams) -> dict[str, Any]:
        return {"answers": Item.objects.filter(run=run, stage="count", state=ItemState.DONE).count()}


def register_asking() -> None:
    register(AskingRun())


def make_asked(server: ModelServer, name: str = "judge-a", project: Project | None = None, **values: Any) -> Project:
    """A project with an endpoint at the model server, priced at $1 in and $2 out per million tokens."""
    project = project or make_project()
    given = {
        "model": f"openai/{name}",
        "api_base": server.api_base,
        "price_in": 1,
        "price_out": 2,
        "max_concurrency": 8,
    }
    make_endpoint(project, name, **{**given, **values})
    return project


def impatient() -> Project:
    """A project whose items do not wait for an endpoint that is down."""
    return make_project(settings_json={"runs": {"wait_minutes": 0}})


def start(project: Project, budget: Any = None, **params: Any) -> Run:
    return launch(project=project, kind="asking", params=params, user=None, budget=budget)


def end(run: Run, shards: int = 10) -> Run:
    """Drives the run as a worker and the reaper would until it has ended."""
    until = time.monotonic() + LONGEST
    while shards or time.monotonic() < until:
        drive(run.pk)
        run.refresh_from_db()
        if run.state not in LIVE:
            return run
        wake_due()
        shards = max(0, shards - 1)
        time.sleep(0.02)
    raise AssertionError(f"run {run.pk} is {run.state} in stage {run.stage}")


def asked(project: Project, **params: Any) -> Run:
    return end(start(project, **params))
