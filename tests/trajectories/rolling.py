"""Rollouts in tests: operators that play a script, sandboxes that answer from one, runs driven by the real engine."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from curation.llm.client.completion import Completion, CompletionRequest, EndpointTarget
from curation.projects.instructions.texts import Instructions
from curation.projects.models import Project
from curation.runs.calls.record import CallAnswer
from curation.runs.kinds import LlmContext
from curation.runs.launch import launch
from curation.runs.models import Item, Run
from curation.scenarios.bundles.document import stored_bundle
from curation.trajectories.params import RolloutParams
from curation.trajectories.rollout.stage import RolloutPlan, play
from sandbox.agent.episode import AgentEpisode
from tests.driving import end
from tests.factories import BUNDLE, make_endpoint, make_project
from tests.sandbox.fake import Answer, FakeBackend, FakeSession

SOLVES = ("todo --help", "todo", "echo 'hello world' > greeting.txt", "exit")
SHOWN = {"todo --help": "usage: todo\n", "todo": 'write "hello world" to greeting.txt in your home\n'}
Says = str | Completion | Exception
Script = Sequence[Says] | Callable[[CompletionRequest], Says]


@dataclass
class Operators:
    """A client for every endpoint, by name: `scripts["operator-a"] = ("todo", "exit")`. A script that is a sequence is
    played reply by reply, its last one for ever; a callable is asked each time. `asked` keeps every request."""

    scripts: dict[str, Script] = field(default_factory=dict)
    asked: list[CompletionRequest] = field(default_factory=list)

    async def complete(self, target: EndpointTarget, request: CompletionRequest) -> Completion:
        self.asked.append(request)
        said = self._says(self.scripts.get(target.name, SOLVES), request)
        if isinstance(said, Exception):
            raise said
        return said if isinstance(said, Completion) else completion(said)

    def _says(self, script: Script, request: CompletionRequest) -> Says:
        if callable(script):
            return script(request)
        before = sum(message["role"] == "assistant" for message in request.messages)
        return script[min(before, len(script) - 1)]


def completion(text: str, *, thinking: str = "", finish: str = "stop") -> Completion:
    return Completion(text, thinking, finish, 100, 10, 0, None, 5)


def fenced(command: str) -> str:
    return f"I do the next step.\n\n```sh\n{command}\n```"


def todo_machine(session: FakeSession, command: str) -> Answer:
    """The machine of `tests.factories.BUNDLE`."""
    return SHOWN.get(command, "")


def has_greeting(session: FakeSession) -> bool:
    """The result of the bundle's checker."""
    return any("hello world" in command for command in session.commands)


@dataclass
class Asking:
    """The context of a stage, as far as an episode needs it: operators are asked, and nothing is recorded."""

    operators: Operators

    async def ask(self, item: Item, target: EndpointTarget, request: CompletionRequest, **_: object) -> CallAnswer:
        return CallAnswer(await self.operators.complete(target, request), 0, cached=False)


def played(
    operators: Operators, rooms: FakeBackend, bundle: dict[str, Any] | None = None, **params: Any
) -> AgentEpisode:
    """An episode of `operator-a` through the scenario, without a run and without a database."""
    target = EndpointTarget(1, "operator-a", "fake/operator", "", "", {}, 8, None, None, None, None, "")
    instructions = Instructions("operator", "", "You operate a terminal.", "", False, 0)
    plan = RolloutPlan(target, instructions, {}, rooms, RolloutParams(model="operator-a", **params))
    given = stored_bundle({**BUNDLE, "name": "greeting", **(bundle or {})})
    context = cast("LlmContext", Asking(operators))
    return asyncio.run(play(context, Item(pk=1, run_id=1), plan, given, index=0, reused=[]))


def make_stage(*, model: str = "operator-a") -> Project:
    """A project with an operator's endpoint."""
    project = make_project()
    make_endpoint(project, model, model="fake/operator")
    return project


def start(project: Project, kind: str = "rollout", **params: Any) -> Run:
    given = {"model": "operator-a", "samples": 1, **params} if kind == "rollout" else params
    return launch(project=project, kind=kind, params=given, user=None)


def run_to_end(project: Project, kind: str = "rollout", **params: Any) -> Run:
    return end(start(project, kind, **params))
