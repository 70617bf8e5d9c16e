"""Rollouts in tests: operators that play a script, sandboxes that answer from one, runs driven by the real engine."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from curation.llm.client.completion import Completion, CompletionRequest, EndpointTarget
from curation.projects.models import Project
from curation.runs.launch import launch
from curation.runs.models import Run
from tests.driving import end
from tests.factories import make_endpoint, make_project
from tests.sandbox.fake import Answer, FakeSession

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
