"""Rows for tests. Each `make_*` makes one thing with believable values; keyword arguments override them."""

import itertools
import random
from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import User

from curation.duels.models import (
    Answer,
    AnswerText,
    Duel,
    Prompt,
    PromptText,
    PullRequest,
    PullRequestText,
    Session,
    Verdict,
)
from curation.duels.score.models import Score, ScorePanel
from curation.duels.score.panels import make_panel as panel_of
from curation.duels.score.panels import saved_panels
from curation.llm.models import Endpoint
from curation.projects.access import Principal
from curation.projects.models import Member, Project, Role, Scope
from curation.projects.tokens.issue import create_token
from curation.runs.models import Run
from curation.samples.models import UNSCORED, Sample, SampleText
from curation.scenarios.bundles.document import digest
from curation.scenarios.models import Scenario, ScenarioAxis, ScenarioText
from curation.trajectories.models import KEPT, Outcome, StepValue, Trajectory, TrajectoryText
from curation.trajectories.shell import steps_of

_numbers = itertools.count(1)

HISTORY = [
    {"role": "system", "content": "You solve coding tasks in a shell."},
    {"role": "user", "content": "Fix the rounding of totals in billing/totals.py."},
]
KING = "THOUGHT: I look around first.\n\n```bash\nls -la\n```"
CHALLENGER = "THOUGHT: The task names the file, so I read it.\n\n```bash\nsed -n '1,80p' billing/totals.py\n```"


JUDGES = ("judge-a", "judge-b", "judge-c")
ORDERS = ("king_first", "challenger_first")


def make_user(username: str = "", **values: Any) -> User:
    return User.objects.create_user(username or f"user{next(_numbers)}", password="a long password", **values)


def make_project(slug: str = "", *, user: User | None = None, role: str = Role.ADMIN, **values: Any) -> Project:
    slug = slug or f"project-{next(_numbers)}"
    project = Project.objects.create(slug=slug, name=values.pop("name", slug), **values)
    if user is not None:
        make_member(project, user, role)
    return project


def make_member(project: Project, user: User | None = None, role: str = Role.REVIEWER) -> User:
    user = user or make_user()
    Member.objects.create(project=project, user=user, role=role)
    return user


def make_bearer(user: User, *scopes: str) -> dict[str, str]:
    """Headers of an API call with a new token; all scopes unless some are given."""
    _, secret = create_token(Principal(user, frozenset(Scope)), scopes=scopes or Scope.values)
    return {"Authorization": f"Bearer {secret}"}


def make_endpoint(project: Project, name: str = "", **values: Any) -> Endpoint:
    name = name or f"model-{next(_numbers)}"
    return Endpoint.objects.create(project=project, name=name, **{"model": "scripted/king", **values})


def make_run(project: Project, kind: str = "duel", **values: Any) -> Run:
    return Run.objects.create(project=project, kind=kind, **values)


def ticket(number: int) -> str:
    """Forty words of which another number has nearly none in the same place: no prompt is a near duplicate."""
    chosen = random.Random(number)
    return f"Ticket {number}: " + " ".join(f"{chosen.choice('bdgkmnrst')}{chosen.randrange(1000)}" for _ in range(40))


def make_prompt(project: Project, *, history: list[dict[str, Any]] | None = None, **values: Any) -> Prompt:
    number = next(_numbers)
    given = {"source": "turns.jsonl", "row_offset": number, "turn_index": 2, "tokens": 40}
    prompt = Prompt.objects.create(
        project=project, **{**given, "instance_id": f"acme__billing-{number}", "repo": "acme/billing", **values}
    )
    given_history = history or [HISTORY[0], {"role": "user", "content": f"{HISTORY[1]['content']} {ticket(number)}"}]
    PromptText.objects.create(
        prompt=prompt,
        session=Session.objects.create(project=project, messages=given_history),
        at=len(given_history),
        reference={"role": "assistant", "content": CHALLENGER},
    )
    return prompt


def set_history(prompt: Prompt, messages: Any, tools: list[dict[str, Any]] | None = None) -> None:
    """Give the prompt other messages before its turn, and other tools."""
    text = prompt.text
    text.session.messages, text.at = messages, len(messages)
    if tools is not None:
        text.session.tools = tools
    text.session.save()
    text.save()


def make_pull_request(project: Project, instance_id: str, **values: Any) -> PullRequest:
    text = {key: values.pop(key, "") for key in ("issue", "description", "patch")}
    row = PullRequest.objects.create(project=project, instance_id=instance_id, **values)
    PullRequestText.objects.create(pull_request=row, **text)
    return row


def make_answer(prompt: Prompt, side: str = "king", *, text: str = "", **values: Any) -> Answer:
    given = {"model": f"{side}-a", "fingerprint": f"{next(_numbers):064d}", "instructions_hash": "0" * 64}
    facts = {"has_thought": True, "blocks": 1, "commands": 1, "action_style": "read"}
    answer = Answer.objects.create(prompt=prompt, side=side, **{**given, **facts, **values})
    AnswerText.objects.create(answer=answer, text=text or (KING if side == "king" else CHALLENGER))
    return answer


def make_sample(project: Project, **values: Any) -> Sample:
    """A slim row with its search text; `score` also sets `score_key`."""
    body = values.pop("body", "Fix the rounding of totals")
    score = values.pop("score", 70.0)
    given = {"bucket": "refined", "priority": 4.0, "preview": "Fix the rounding of totals"} | values
    sample = Sample.objects.create(
        project=project, score=score, score_key=UNSCORED if score is None else score, **given
    )
    SampleText.objects.create(sample=sample, body=body)
    return sample


def make_duel(project: Project, *, king: str = KING, challenger: str = CHALLENGER, **values: Any) -> Duel:
    """A judged duel with its sample and three judges' verdicts in both orders; `values` go to the sample."""
    prompt = make_prompt(project, **({"instance_id": values["instance_id"]} if "instance_id" in values else {}))
    run = values.pop("run", None)
    sample = make_sample(
        project, run=run, **{"source": prompt.source, "repo": prompt.repo, "instance_id": prompt.instance_id} | values
    )
    duel = Duel.objects.create(
        project=project,
        prompt=prompt,
        run=run,
        sample=sample,
        king=make_answer(prompt, "king", text=king),
        challenger=make_answer(prompt, "challenger", text=challenger),
        score=sample.score,
        score_key=sample.score_key,
        bucket=sample.bucket,
        flags=sample.flags,
        metrics=dict.fromkeys(("correctness", "grounding", "progress", "protocol", "efficiency"), sample.score),
    )
    verdicts = Verdict.objects.bulk_create(
        Verdict(
            duel=duel,
            run=run,
            judge=judge,
            order=order,
            fingerprint="0" * 64,
            instructions_hash="0" * 64,
            parsed=True,
            dimensions={"correctness": better, "grounding": better, "progress": 0, "protocol": 0, "efficiency": 0},
            reason="The second reads the file that the task names.",
        )
        for judge in JUDGES
        for order, better in (("king_first", 2), ("challenger_first", 1))
    )
    copied = {name: getattr(duel, name) for name in ("score", "score_key", "bucket", "flags", "metrics")}
    counted = [verdict.pk for verdict in verdicts]
    duel.counting = Score.objects.create(duel=duel, run=run, panel=make_panel(project), verdicts=counted, **copied)
    duel.save(update_fields=["counting"])
    return duel


def make_panel(project: Project, judges: Sequence[str] = JUDGES) -> ScorePanel:
    """The panel that counts in the project if it is its first one."""
    wanted = panel_of(fingerprints=dict.fromkeys(judges, "0" * 16), orders=ORDERS, min_judges=None, weights=None)
    return saved_panels(project.pk, [wanted])[wanted.digest]


AXES = {"task": "file-edit", "provider": "script", "announcement": "motd", "doc_depth": "help", "difficulty": 1}
TODO = """#!/bin/sh
[ "$1" = --help ] && { echo 'usage: todo'; exit; }
echo 'write "hello world" to greeting.txt in your home'
"""
BUNDLE: dict[str, Any] = {
    "title": "Leave a greeting",
    "axes": AXES,
    "fixtures": [{"path": "/usr/local/bin/todo", "mode": "755", "content": TODO}],
    "env": {},
    "announcement": {"kind": "motd", "text": "Work is announced by: todo"},
    "provider": {"name": "todo", "doc": "todo --help"},
    "reference_solution": "todo > /dev/null\necho 'hello world' > greeting.txt\nexit",
    "checker": "[ \"$(cat /home/agent/greeting.txt)\" = 'hello world' ]",
    "expected_terminal": "exit",
    "authored_by": "a person",
    "seed": 1,
}
PROMPT = "agent@host:~$ "
COMMANDS = ("todo --help", "todo", "echo 'hello world' > greeting.txt")
OUTPUTS = ("usage: todo\n", 'write "hello world" to greeting.txt in your home\n', "")


def make_scenario(project: Project, name: str = "", *, bundle: dict[str, Any] | None = None, **values: Any) -> Scenario:
    """An admitted scenario with its bundle; `bundle` holds the keys that differ from `BUNDLE`."""
    name = name or f"greeting {next(_numbers)}"
    given = {**BUNDLE, "name": name, **(bundle or {})}
    row = {
        "title": given["title"],
        "axes": given["axes"],
        "expected_terminal": given["expected_terminal"],
        "authored_by": given["authored_by"],
        "seed": given["seed"],
        "status": "admitted",
        "bundle_sha256": digest(given),
    }
    scenario = Scenario.objects.create(project=project, name=name, **{**row, **values})
    ScenarioText.objects.create(scenario=scenario, bundle=given)
    ScenarioAxis.objects.bulk_create(
        ScenarioAxis(scenario=scenario, axis=axis, value=str(value)) for axis, value in given["axes"].items()
    )
    return scenario


def make_turns(
    *commands: str, terminal: str = "exit", outputs: tuple[str, ...] = (), banner: str = "Work is announced by: todo\n"
) -> list[dict[str, Any]]:
    """Turns in deploy format: orientation, each command with its output, the terminal unless it is empty."""
    turns: list[dict[str, Any]] = [{"kind": "orientation", "text": banner + PROMPT, "prompt": PROMPT}]
    for number, command in enumerate(commands):
        output = outputs[number] if number < len(outputs) else ""
        shown = {"text": output + PROMPT, "prompt": PROMPT, "exit_code": 0, "seconds": 0.01, "truncated": False}
        turns += [{"kind": "action", "text": command}, {"kind": "output", **shown}]
    return [*turns, {"kind": "action", "text": terminal}] if terminal else turns


def make_steps(*commands: str, **given: Any) -> list[dict[str, Any]]:
    """The steps of a shell; `given` as for `make_turns`."""
    return steps_of(make_turns(*commands, **given))


def make_trajectory(
    project: Project,
    scenario: Scenario | None = None,
    *,
    outcome: str = Outcome.SOLVED,
    commands: tuple[str, ...] = COMMANDS,
    outputs: tuple[str, ...] = OUTPUTS,
    terminal: str = "exit",
    turns: list[dict[str, Any]] | None = None,
    sample: dict[str, Any] | None = None,
    **values: Any,
) -> Trajectory:
    """A recorded rollout with its text and its sample; `keep` follows the outcome, `sample` overrides its fields."""
    scenario = scenario or make_scenario(project)
    keep = outcome in KEPT
    turns = turns or make_turns(*commands, terminal=terminal, outputs=outputs)
    text = {
        "steps": steps_of(turns),
        "checker_output": values.pop("checker_output", ""),
        "exchange": values.pop("exchange", [{"role": "system", "content": "You operate a shell."}]),
    }
    row = {
        "run": None,
        "model": "operator-a",
        "bundle_sha256": scenario.bundle_sha256,
        "backend": "bubblewrap",
        "terminal": terminal.partition(" ")[0],
        "panic_reason": terminal.partition(" ")[2] if terminal.startswith("panic") else "",
        "outcome": outcome,
        "keep": keep,
        "checker_passed": keep,
        "steps": len(text["steps"]),
        "commands": len(commands),
        "tokens": 120,
        "seconds": 0.03,
    } | values
    sample_values = {
        "run": row["run"],
        "kind": "trajectory",
        "score": None,
        "bucket": "",
        "source": "scenarios",
        "instance_id": scenario.name,
        "model": row["model"],
        "axes": {axis: str(value) for axis, value in scenario.axes.items()},
        "preview": (commands[0] if commands else terminal)[:200],
        "body": "\n".join(turn["text"] for turn in turns),
    }
    trajectory = Trajectory.objects.create(
        project=project, scenario=scenario, sample=make_sample(project, **{**sample_values, **(sample or {})}), **row
    )
    TrajectoryText.objects.create(trajectory=trajectory, **text)
    return trajectory


def make_step_value(trajectory: Trajectory, at: int, run: Run, **values: Any) -> StepValue:
    """A step's value by the operator of the trajectory."""
    row = {"key": f"{trajectory.pk}-{at}", "operator": trajectory.model, **values}
    return StepValue.objects.create(project=trajectory.project, run=run, trajectory=trajectory, at=at, **row)


def called(command: str, output: str, number: int = 1, **fields: Any) -> dict[str, Any]:
    """A step of an agent that calls a tool, with the tool's result."""
    call = {"tool_call_id": f"call_{number}", "function_name": "bash", "arguments": {"command": command}}
    results = [{"source_call_id": f"call_{number}", "content": output}]
    return {"source": "agent", "message": "", "tool_calls": [call], "observation": {"results": results}, **fields}


BASH = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}


def make_imported(
    project: Project, *agent_steps: dict[str, Any], outcome: str = Outcome.SOLVED, task: str = "sum", **values: Any
) -> Trajectory:
    """An imported run with its text and its sample: a system prompt, the task, and the agent's steps."""
    steps: list[dict[str, Any]] = [
        {"source": "system", "message": "You use bash."},
        {"source": "user", "message": f"Task: {task}"},
    ]
    steps += agent_steps or (called("ls", "a.csv\n"), called("awk a.csv", "", 2))
    steps = [{"step_id": number, **step} for number, step in enumerate(steps, start=1)]
    text = {
        "steps": steps,
        "document": {"agent": {"name": "terminus-2", "tool_definitions": [BASH]}},
        "marks": values.pop("marks", {}),
        "metadata": values.pop("metadata", {}),
    }
    sample = make_sample(project, kind="trajectory", score=None, bucket="", source="jobs.zip", instance_id=task)
    row = {"agent": "terminus-2", "model": "openai/stub-good", "source": "jobs.zip"} | values
    trajectory = Trajectory.objects.create(
        project=project, sample=sample, task=task, outcome=outcome, keep=outcome in KEPT, steps=len(steps), **row
    )
    TrajectoryText.objects.create(trajectory=trajectory, **text)
    return trajectory
