"""Try a reset against a live server: its arguments, the task that the server plays, and how the two compare."""

import asyncio
import time

from pydantic import ConfigDict, Field

from curation.evaluations.live.schemas import TaskOut, TriedResetOut
from curation.evaluations.live.stage import CheckedNetwork, asked_of, check_address
from curation.evaluations.live.task_set import LiveTask, tasks_of
from curation.evaluations.models import Split, SplitRow
from curation.evaluations.params import SANDBOX, EvaluateParams
from curation.projects.access import Access
from curation.projects.models import Scope
from curation.web.ids import find_param
from curation.web.problems import Conflict, Invalid
from curation.web.schemas import StrictModel
from sandbox.agent.action_form import unknown_form
from sandbox.agent.environment import Observation
from sandbox.agent.openenv import OpenEnvEnvironment
from sandbox.agent.reported_task import AskedTask, TaskFacts, compare_tasks, reported_task
from sandbox.errors import SandboxError

# A person waits for the answer, and a process of the web server with them.
MOST_SECONDS = 20.0


class TryParams(StrictModel):
    """The parameters of a launch that a reset is made from; `task` is the number of the task to try, from 1."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    environment: str = Field(max_length=300, examples=["http://127.0.0.1:8000"])
    split: str = Field("", max_length=20, examples=["3"])
    reset_template: str = Field("", max_length=20_000, examples=['{"task": {{row.task}}}'])
    seed: int = Field(0, ge=0, lt=2**53)
    task: int = Field(1, ge=1, le=1_000_000)


def try_reset(*, access: Access, given: TryParams) -> TriedResetOut:
    """Open one episode on the server and close it again. Raises `Invalid` for parameters that a launch refuses, and
    `Conflict` with the server's words if it cannot be reached or refuses the reset."""
    access.require(Scope.RUN)
    params = EvaluateParams(kind="live", models=["-"], episodes=1, **given.model_dump(exclude={"task", "split"}))
    if params.environment == SANDBOX:
        raise Invalid.at("environment", "The sandbox needs no reset; name a server.")
    check_address(params.environment)
    split = find_param(Split.objects.of(access.project), given.split, "split", "split") if given.split else None
    tasks = tasks_of(access.project, params, split)
    if len(tasks) < given.task:
        raise Invalid.at("task", f"Choose a task from 1 to {len(tasks):,}.")
    task = tasks[given.task - 1]
    asked = _asked(task)
    began = time.monotonic()
    try:
        opening, said = asyncio.run(_open(params.environment, task))
    except SandboxError as failed:
        raise Conflict(f"The server gave no episode: {failed}", code="environment_failed") from None
    return TriedResetOut(
        key=task.key,
        sent=task.reset,
        asked=TaskOut.model_validate(asked.facts.as_json()),
        said=TaskOut.model_validate(said.as_json()),
        confirmation=compare_tasks(asked, said).value,
        text=opening.text,
        fields=sorted(opening.fields),
        seconds=round(time.monotonic() - began, 2),
    )


def _asked(task: LiveTask) -> AskedTask:
    if task.target_id is None:
        return AskedTask(known=False)
    return asked_of(SplitRow.objects.select_related("text").get(pk=task.target_id))


async def _open(address: str, task: LiveTask) -> tuple[Observation, TaskFacts]:
    environment = OpenEnvEnvironment(
        address, reset=task.reset, form=unknown_form(), seconds=MOST_SECONDS, network=CheckedNetwork()
    )
    try:
        opening = await environment.reset()
        return opening, reported_task(opening.fields, await environment.about_task())
    finally:
        await environment.close()
