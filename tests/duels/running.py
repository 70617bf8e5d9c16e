"""Helpers for duel runs: models with scripted replies, and runs driven by the real engine."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from curation.duels.models import Prompt, Verdict
from curation.duels.score.models import Score
from curation.llm.client.completion import Completion, CompletionRequest, EndpointTarget
from curation.llm.client.pricing import cost_of
from curation.projects.models import Project
from curation.runs.launch import launch
from curation.runs.models import Run
from judging.answers.facts import answer_facts
from tests.driving import end
from tests.factories import (
    HISTORY,
    make_bearer,
    make_endpoint,
    make_member,
    make_project,
    make_prompt,
    make_pull_request,
)

DIMENSIONS = ("correctness", "grounding", "progress", "protocol", "efficiency")
KING = "THOUGHT: I look around first.\n\n```bash\nls -la KING\n```"
CHALLENGER = "THOUGHT: I read the part in question.\n\n```bash\nsed -n '1,80p' CHALLENGER\n```"
JUDGES = ("judge-a", "judge-b", "judge-c")
Says = str | Completion | Exception
Reply = Callable[[CompletionRequest], Says]


@dataclass
class Models:
    """A client for every endpoint, by name: `says["judge-a"] = lambda request: "…"`; `asked` keeps its requests."""

    says: dict[str, Reply] = field(default_factory=dict)
    asked: list[tuple[str, CompletionRequest]] = field(default_factory=list)

    async def complete(self, target: EndpointTarget, request: CompletionRequest) -> Completion:
        self.asked.append((target.name, request))
        said = self.says.get(target.name, default_reply(target.name))(request)
        if isinstance(said, Exception):
            raise said
        if isinstance(said, Completion):
            return said
        return completion(said, cost=cost_of(target, 100, 10))

    def requests(self, name: str) -> list[CompletionRequest]:
        return [request for asked, request in self.asked if asked == name]

    def text_sent(self, name: str) -> str:
        """Everything that an endpoint was ever sent."""
        return "\n".join(str(message["content"]) for request in self.requests(name) for message in request.messages)


def serve(patched: pytest.MonkeyPatch) -> Models:
    """Replace the client of the endpoints; everything else of a run is real."""
    models = Models()
    patched.setattr("curation.runs.engine.llm_stage.client_for", lambda target: models)
    return models


def completion(text: str, *, thinking: str = "", finish: str = "stop", cost: Decimal | None = None) -> Completion:
    return Completion(text, thinking, finish, 100, 10, 0, cost, 5)


def default_reply(name: str) -> Reply:
    if name.startswith("king"):
        return lambda request: KING
    if name.startswith("challenger"):
        return lambda request: CHALLENGER
    return fair()


def fair(*, won: int = 5, reason: str = "as written") -> Reply:
    """A judge for which the challenger wins `won` dimensions in both orders, and the others are draws. It sees planted
    faults, and that two answers are the same."""

    def reply(request: CompletionRequest) -> str:
        if (known := on_control(request)) is not None:
            return known
        pick = 1 if _challenger_is_first(request) else 2
        return verdict(*[pick] * won, *[0] * (5 - won), reason=reason)

    return reply


def on_control(request: CompletionRequest) -> str | None:
    """What a sound judge says of an answer and itself, with or without a planted fault, which loses; None of others."""
    one, two = shown(request)
    if one.splitlines()[0] != two.splitlines()[0]:
        return None
    faults = [abs(facts.blocks - 1) + abs(facts.commands - 1) for facts in map(answer_facts, (one, two))]
    return verdict(*[(faults[0] > faults[1]) + 1 if faults[0] != faults[1] else 0] * 5)


def against(request: CompletionRequest) -> str:
    """A judge that prefers the challenger's opponent, and is sound otherwise."""
    if (known := on_control(request)) is not None:
        return known
    return verdict(*[2 if _challenger_is_first(request) else 1] * 5)


def first(request: CompletionRequest) -> str:
    """A judge that always prefers the answer shown first."""
    return verdict(1, 1, 1, 1, 1)


def prose(request: CompletionRequest) -> str:
    return "Both answers have their merits."


def verdict(*values: int, reason: str = "as written") -> str:
    return json.dumps({**dict(zip(DIMENSIONS, values, strict=True)), "reason": reason})


def shown(request: CompletionRequest) -> tuple[str, str]:
    """The two answers of a judge's request, in their order."""
    text = str(request.messages[-1]["content"])
    one, two = (
        found[2] for found in re.finditer(r'<answer_[12] key="(\w+)">\n(.*?)\n</answer_[12] key="\1">', text, re.DOTALL)
    )
    return one, two


def _challenger_is_first(request: CompletionRequest) -> bool:
    return "CHALLENGER" in shown(request)[0]


def make_arena(
    *, prompts: int = 3, judges: tuple[str, ...] = JUDGES, settings: dict[str, Any] | None = None, slug: str = ""
) -> tuple[Project, list[Prompt]]:
    """A project with endpoints `king`, `challenger` and judges, and prompts whose pull requests are known.

    Without control duels and without a second reader of leaks, unless the settings ask for them.
    """
    given = {"panel": {"judges": list(judges)}, "generation": {}} | (settings or {})
    panel, generation = {"controls": 0.0, **given["panel"]}, {"read_leaks": False, **given["generation"]}
    project = make_project(slug, settings_json={**given, "panel": panel, "generation": generation})
    for name in ("king", "challenger", *judges):
        make_endpoint(project, name, model=f"fake/{name}")
    made = [
        make_prompt(project, history=[HISTORY[0], {"role": "user", "content": f"Fix rounding error {n}."}])
        for n in range(prompts)
    ]
    for prompt in made:
        make_pull_request(project, prompt.instance_id, title="Round totals half to even", patch="+    quantise(total)")
    return project, made


def start(project: Project, kind: str = "duel", **params: Any) -> Run:
    if kind == "duel":
        params = {"king_model": "king", "challenger_model": "challenger", **params}
    return launch(project=project, kind=kind, params=params, user=None)


def run_to_end(project: Project, kind: str = "duel", **params: Any) -> Run:
    return end(start(project, kind, **params))


def verdict_rows(run: Run) -> list[Verdict]:
    """The verdicts that made the run's scores."""
    ids = [pk for verdicts in run.scores.values_list("verdicts", flat=True) for pk in verdicts]
    return list(Verdict.objects.filter(pk__in=ids).select_related("duel__prompt"))


def scores_of(run: Run) -> list[Score]:
    """The run's scores, in the order of the duels."""
    return list(run.scores.select_related("duel__sample", "panel").order_by("duel_id"))


def report(client: Client, run: Run) -> str:
    """The Markdown as a script reads it."""
    bearer = make_bearer(make_member(run.project, role="curator"))
    response = client.get(f"/api/v1/runs/{run.pk}/report.md", headers=bearer)
    assert response.status_code == 200
    assert response["Content-Type"] == "text/markdown; charset=utf-8"
    return b"".join(response.streaming_content).decode()  # type: ignore[attr-defined]


def page_of(client: Client, run: Run) -> str:
    client.force_login(make_member(run.project, role="curator"))
    return client.get(f"/p/{run.project.slug}/runs/{run.pk}/").content.decode()
