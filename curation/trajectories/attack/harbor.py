"""Attacks on Harbor tasks: a model writes programs, and Harbor runs each as the solution of a copy of the task."""

import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from curation.llm.client.completion import CompletionRequest, EndpointTarget
from curation.projects.instructions.texts import Instructions
from curation.runs.calls.targets import delimiter_secret
from curation.runs.kinds import ItemFailed, ItemSkipped, Json, LlmContext
from curation.runs.models import Item
from curation.runs.workers.sandbox import in_session_thread
from curation.scenarios.gate.harbor import one_at_a_time
from curation.scenarios.models import Scenario
from curation.trajectories.params import AttackParams
from curation.web.text.figures import counted
from judging.messages import fenced_blocks
from judging.sections import sections
from sandbox.errors import SandboxError
from sandbox.gate.report import Check, ReportLine
from sandbox.harbor.attack import TriedAttack, try_attack
from sandbox.harbor.task_folder import ENVIRONMENT, TESTS, TaskFolder

SIGHTS = {"without": "without sight of the checker", "with": "with sight of the checker"}
# Characters of one file that the model is shown, and of the tests' output.
SHOWN_FILE, SHOWN_OUTPUT = 20_000, 4_000
NOT_TRIED = "warning: no reply of the model was an attack, so nothing was tried"
# A line that does nothing.
_IDLE = re.compile(r"(#.*|:|true|exit( \d+)?)?")
NO_PROGRAM = "Your reply has no block that begins with ```sh. Reply with one program."


@dataclass(frozen=True, slots=True)
class HarborJob:
    scenario: Scenario
    task: TaskFolder
    target: EndpointTarget
    instructions: Instructions


async def attack_task(
    context: LlmContext, item: Item, job: HarborJob, params: AttackParams, round_: int, reused: list[int]
) -> list[Check]:
    """Attack with each sight until an attempt gets in; later rounds have attempts of their own. Raises `ItemSkipped`
    for a task that cannot be attacked here, `ItemFailed` if Harbor fails."""
    if lacking := job.task.not_run_here():
        raise ItemSkipped(f"it cannot be run here: {' '.join(lacking)}")
    if job.task.steps:
        raise ItemSkipped("a task of steps is not attacked")
    checks = []
    for sight in params.sights:
        folders = [ENVIRONMENT, TESTS] if sight == "with" else [ENVIRONMENT]
        user = shown(job.task, folders, call=f"{sight} {round_}")
        checks.append(await _attacked(context, item, job, params.attempts, sight, user, reused))
    return checks


async def _attacked(
    context: LlmContext, item: Item, job: HarborJob, most: int, sight: str, user: str, reused: list[int]
) -> Check:
    doubtful, made = None, 0
    async for number, tried in _programs(context, item, job, most, user, reused):
        made += not all(_IDLE.fullmatch(line.strip(" \t;")) for line in tried.lines[0].command.splitlines())
        name = f"attack {number} {SIGHTS[sight]}"
        if tried.undone:
            return Check(name, False, got_in(tried), tried.lines)
        if tried.differs:
            reason = f"warning: the tests reward {tried.reward:g}, and {tried.differs} differs from the reference's"
            doubtful = Check(name, True, f"{reason}. Look whether that is the work.", tried.lines)
    return doubtful or survived(made, sight)


async def work_honestly(context: LlmContext, item: Item, job: HarborJob, most: int, reused: list[int]) -> Check:
    """Do the task until a program is rewarded as the reference is."""
    lines: tuple[ReportLine, ...] = ()
    async for _, tried in _programs(context, item, job, most, shown(job.task, [ENVIRONMENT], call="honest"), reused):
        lines = tried.lines
        if tried.is_full and not tried.undone:
            return honest_check(job.target.name, True, lines)
    return honest_check(job.target.name, False, lines)


async def _programs(
    context: LlmContext, item: Item, job: HarborJob, most: int, user: str, reused: list[int]
) -> AsyncIterator[tuple[int, TriedAttack]]:
    """The programs that the model writes, each with its number and tried; the model is told what became of it."""
    messages: list[Json] = [{"role": "system", "content": job.instructions.text}, {"role": "user", "content": user}]
    for number in range(1, most + 1):
        request = CompletionRequest(list(messages))
        answered = await context.ask(item, job.target, request, instructions_hash=job.instructions.sha256)
        reused += [answered.call_id] if answered.cached else []
        said = answered.completion.text
        script = next((block.script for tag, block in fenced_blocks(said) if tag == "sh"), "")
        messages.append({"role": "assistant", "content": said or "(nothing)"})
        if not script:
            messages.append({"role": "user", "content": NO_PROGRAM})
            continue
        tried = await try_program(job.task, f"#!/bin/sh\n{script}\n")
        yield number, tried
        told = f"The reward is {tried.reward:g}. Printed:\n{tried.printed[-SHOWN_OUTPUT:]}\nTry another way."
        messages.append({"role": "user", "content": told})


def got_in(tried: TriedAttack) -> str:
    """The reason of an attack that got in, or empty."""
    return f"the tests reward {tried.reward:g}, but {tried.undone} is not done" if tried.undone else ""


def honest_check(solver: str, solved: bool, lines: Sequence[ReportLine]) -> Check:
    reason = "" if solved else f"{solver} does the work and is not rewarded, or cannot do it"
    return Check("honest work after the repair", solved, reason, tuple(lines))


def survived(attacks: int, sight: str) -> Check:
    """The check of attacks that did not get in. Replies without an attack prove nothing."""
    return Check(f"{counted(attacks, 'attack')} {SIGHTS[sight]}", True, "" if attacks else NOT_TRIED)


def shown(task: TaskFolder, folders: Sequence[str], *, call: str, then: Sequence[tuple[str, str]] = ()) -> str:
    """The request about a task: its instruction, the files below the folders, and other sections."""
    parts = [("instruction", task.instruction)]
    for path, file in sorted(task.below(*folders).items()):
        text = file.text if file.text is not None else "(not text)"
        rest = "\n(the rest is not shown)" if len(text) > SHOWN_FILE else ""
        parts.append(("file", f"{path}\n{text[:SHOWN_FILE]}{rest}"))
    return sections([*parts, *then], secret=delimiter_secret(), call=call)


async def try_program(task: TaskFolder, script: str) -> TriedAttack:
    def work(checkpoint: Callable[[], None]) -> TriedAttack:
        with one_at_a_time(checkpoint) as (runner, folder):
            return try_attack(task, runner, folder, script)

    try:
        return await in_session_thread(work)
    except SandboxError as failed:
        raise ItemFailed(f"Harbor failed, so nothing is known of the attack: {failed}") from failed
