"""Stage `episodes`: every model plays every task, each episode in an environment of its own."""

import asyncio
import hashlib
import random
import socket
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import urlsplit

import httpx

from curation.evaluations.families import family_of
from curation.evaluations.live.mismatches import as_mismatch, stop_if_all_mismatch
from curation.evaluations.live.record import PlayedEpisode, from_live, from_shell, save_episode
from curation.evaluations.live.task_set import tasks_of, user_text
from curation.evaluations.models import EvaluatedModel, Evaluation, SplitRow
from curation.evaluations.params import SANDBOX, EvaluateParams
from curation.llm.client.completion import CompletionRequest, EndpointTarget
from curation.runs.calls.targets import run_instructions, targets_named
from curation.runs.kinds import ItemFailed, LlmContext, PlannedItem, ServerPaused, Write
from curation.runs.models import Item, Run
from curation.runs.workers.sandbox import backend, labels_of, shell_environment
from curation.scenarios.bundles.document import Bundle, setup_of, stored_bundle
from curation.scenarios.models import Scenario
from curation.trajectories.rollout.server_episode import ServedEpisode
from curation.trajectories.rollout.stage import OPERATORS, reply_of
from curation.web.outbound.addresses import MODELS, ForbiddenAddress, proxy_for, refuse_private
from curation.web.outbound.transport import AsyncCheckedTransport, open_socket
from curation.web.problems import Invalid, Problem
from judging.commands.screen import ENVIRONMENT, CommandFamily, extract, score_command
from judging.messages import content_of
from sandbox.agent.action_form import ActionForm, ActionKind, called
from sandbox.agent.episode import Complete, EpisodeLimits, Message, ModelReply, run_episode
from sandbox.agent.live import LivePrompt, Rules, run_live_episode
from sandbox.agent.openenv import OpenEnvEnvironment, action_form_of, answers, can_play
from sandbox.agent.reported_task import AskedTask, asked_task
from sandbox.agent.shell_environment import ShellEnvironment, ShellTask
from sandbox.agent.tools import functions_of
from sandbox.errors import (
    EnvironmentDown,
    EnvironmentFull,
    NoReply,
    OtherTask,
    SandboxError,
    SandboxFailed,
    UnknownAction,
)
from sandbox.protocol import SessionLimits

SCHEMES = ("ws://", "wss://")
MAX_ATTEMPTS = 3
# A server that does not reply in time has taken that time in two sessions.
MAX_TIMEOUTS = 2
Function = Mapping[str, object]
# How long an episode waits while the server is full, which is no failed attempt.
PATIENCE_SECONDS = 15 * 60.0
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 10.0
# Repeats of a task are other requests than its first episode, so that none of them is answered from its record.
MOST_EPISODES = 1_000_000


@dataclass(frozen=True, slots=True)
class EpisodeJob:
    """One task for one model. `bundle` is the scenario's; `system` and, on a server, `turn` are the prompts, `asked` is
    the row's description of its task."""

    by: EvaluatedModel
    target: EndpointTarget
    family: CommandFamily
    system: str
    turn: str
    bundle: Bundle | None
    asked: AskedTask

    @property
    def instructions_hash(self) -> str:
        """SHA-256 of the prompts without the task."""
        return hashlib.sha256("\n".join(filter(None, (self.system, self.turn))).encode()).hexdigest()


class CheckedNetwork:
    """Connects to OpenEnv servers at the addresses that were checked, like model endpoints."""

    def transport(self) -> httpx.AsyncBaseTransport:
        return AsyncCheckedTransport(MODELS)

    async def socket(self, url: str, seconds: float) -> socket.socket | None:
        """None behind a proxy of the environment: there the host is checked, and the proxy connects."""
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "wss" else 80)
        try:
            if proxy_for(url.replace("ws", "http", 1)):
                refuse_private(url.replace("ws", "http", 1), MODELS)
                return None
            return await open_socket(host, port, MODELS, seconds=seconds)
        except ForbiddenAddress as problem:
            raise PermissionError(problem.detail) from None


class EpisodeStage:
    name = "episodes"

    def __init__(self, params: EvaluateParams) -> None:
        self._params = params
        self.queue = "rollout" if params.environment == SANDBOX else "llm"
        self.most_open = params.max_concurrency
        self._form: ActionForm | None = None

    def targets(self, run: Run) -> Sequence[EndpointTarget]:
        """Called before every shard, so an address that is no longer allowed, or a server whose actions the family does
        not fit, ends the run with the reason."""
        if self._params.environment != SANDBOX:
            check_address(self._params.environment)
            with suppress(SandboxFailed):  # the server is down: its items wait
                self._form = fitting_form(self._params, family_of(Evaluation.objects.get(run=run)))
        return targets_named(run.project, self._params.models, "models")

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        """Task by task for all models, so that every endpoint has work from the start."""
        evaluation = Evaluation.objects.select_related("split").get(run=run)
        for number, task in enumerate(tasks_of(run.project, self._params, evaluation.split)):
            for place in range(len(self._params.models)):
                data = {"place": place, "number": number, "task": task.key, "repeat": task.repeat, "tier": task.tier}
                yield PlannedItem(f"{number}:{place}", task.target_id, {**data, "reset": task.reset})

    def load(self, run: Run, items: Sequence[Item]) -> dict[int, EpisodeJob]:
        """Called before every claim: raises `Conflict`, which ends the run, while the server plays other tasks only."""
        stop_if_all_mismatch(run)
        evaluation = Evaluation.objects.get(run=run)
        models = {model.place: model for model in evaluation.models.all()}
        targets = {target.name: target for target in targets_named(run.project, self._params.models, "models")}
        ids = [item.target_id for item in items if item.target_id is not None]
        in_sandbox = self._params.environment == SANDBOX
        family = family_of(evaluation)
        name = OPERATORS[self._params.tools] if in_sandbox else "live_action" if family.rule == "action" else "live"
        system = run_instructions(run, name).text
        turn = "" if in_sandbox else run_instructions(run, f"{name}_turn").text
        bundles = _bundles(run, ids) if in_sandbox else {}
        rows = {} if in_sandbox else SplitRow.objects.select_related("text").in_bulk(ids)
        jobs = {}
        for item in items:
            if in_sandbox and item.target_id not in bundles:
                continue
            by = models[item.data["place"]]
            target_id = item.target_id or 0
            row = rows.get(target_id)
            own = (_system_of(row) if row else "") or system
            asked = asked_of(row) if row else AskedTask(known=False)
            jobs[item.pk] = EpisodeJob(by, targets[by.name], family, own, turn, bundles.get(target_id), asked)
        return jobs

    async def work(self, context: LlmContext, item: Item, job: EpisodeJob | None) -> Write:
        """A broken environment fails the item after some attempts; it is never scored."""
        if job is None:
            raise ItemFailed("The scenario was deleted or is no longer admitted.")
        try:
            played = await (self._in_sandbox if job.bundle else self._on_server)(context, item, job)
        except OtherTask as other:
            raise ItemFailed(f"mismatch: {other}", partial(as_mismatch, other)) from other
        except Invalid as misfit:
            raise ItemFailed(misfit.detail) from misfit
        except EnvironmentDown as down:
            raise ServerPaused(self._params.environment, str(down)) from down
        except SandboxError as failed:
            raise ItemFailed(f"infrastructure: {failed}") from failed
        served = self._served(context.run, item, job, played)
        return save_episode(by=job.by, item=item, played=played, served=served)

    def _served(self, run: Run, item: Item, job: EpisodeJob, played: PlayedEpisode) -> ServedEpisode | None:
        """The episode as a trajectory, if the launch asks for it."""
        if played.live is None or not self._params.trajectories:
            return None
        return ServedEpisode(
            run=run,
            item_key=item.key,
            environment=self._params.environment,
            model=job.by.name,
            instructions_hash=job.instructions_hash,
            key=str(item.data["task"]),
            repeat=int(item.data.get("repeat", 0)),
            tier=str(item.data["tier"] or played.tier),
            episode=played.live,
        )

    def _complete(
        self, context: LlmContext, item: Item, job: EpisodeJob, functions: Callable[[], Sequence[Function]]
    ) -> Complete:
        # Items of earlier versions have no `repeat`.
        sample_index = int(item.data["number"]) + MOST_EPISODES * int(item.data.get("repeat", 0))

        async def complete(messages: Sequence[Message]) -> ModelReply:
            request = CompletionRequest(messages, job.by.call_params, sample_index=sample_index, tools=functions())
            answer = await context.ask(
                item, job.target, request, instructions_hash=job.instructions_hash, fresh=self._params.fresh
            )
            return reply_of(answer.completion)

        return complete

    async def _in_sandbox(self, context: LlmContext, item: Item, job: EpisodeJob) -> PlayedEpisode:
        bundle = job.bundle
        if bundle is None:
            raise SandboxFailed("The episode has no scenario.")
        sandboxes = await asyncio.to_thread(backend)
        task = ShellTask(
            setup_of(bundle, limits=SessionLimits(), labels=labels_of(item)), bundle.checker, bundle.expected_terminal
        )
        seconds = SessionLimits().command_seconds
        tools = bundle.offered() if self._params.tools else None
        functions = [] if tools is None else functions_of(tools)

        def environment() -> ShellEnvironment:
            return shell_environment(task, sandboxes, command_seconds=seconds)

        episode = await run_episode(
            open_environment=environment,
            complete=self._complete(context, item, job, lambda: functions),
            instructions=job.system,
            expected_terminal=bundle.expected_terminal,
            limits=EpisodeLimits(max_turns=self._params.max_steps),
            tools=tools,
        )
        if episode.error:
            raise SandboxFailed(episode.error)
        return from_shell(episode, task=bundle.title)

    async def _on_server(self, context: LlmContext, item: Item, job: EpisodeJob) -> PlayedEpisode:
        if item.waiting_since:
            if not await answers(self._params.environment, CheckedNetwork()):
                raise EnvironmentDown(f"{self._params.environment} does not answer")
            await context.server_answers(item)

        async def play() -> PlayedEpisode:
            form = self._form
            if form is None:
                form = await asyncio.to_thread(fitting_form, self._params, job.family)
            environment = OpenEnvEnvironment(
                self._params.environment,
                reset=item.data["reset"],
                form=form,
                seconds=self._params.environment_timeout,
                network=CheckedNetwork(),
                calls_functions=self._params.tools,
            )
            complete = self._complete(context, item, job, lambda: environment.functions)

            async def act(messages: Sequence[Message]) -> ModelReply:
                reply = await complete(messages)
                return replace(reply, text=called(reply.calls)) if self._params.tools else reply

            try:
                episode = await run_live_episode(
                    environment=environment,
                    complete=act,
                    prompt=LivePrompt(job.system, job.turn),
                    rules=rules_of(form, job.family, hints=self._params.hints),
                    max_steps=self._params.max_steps,
                    asked=job.asked,
                )
            finally:
                await environment.close()
            return from_live(episode)

        return await _retry_if_broken(play, self._params.environment)


def fitting_form(params: EvaluateParams, family: CommandFamily) -> ActionForm:
    """Read the form of the server's actions. Raise `Invalid` if the agent's family does not fit it, and `SandboxFailed`
    if the server does not say."""
    try:
        form = asyncio.run(action_form_of(params.environment, CheckedNetwork(), field=params.action_field))
        if params.tools and (family.rule != "action" or form.kind != ActionKind.TOOLS):
            reason = (
                f"{params.environment}: its actions are no calls of tools, or the family is not `{ENVIRONMENT.name}`."
            )
            raise Invalid.at("params.tools", reason, code="action_misfit")
        return form if family.rule == "action" else form.for_commands(is_named=bool(params.action_field))
    except UnknownAction as unknown:
        is_field = bool(params.action_field) and "no field" in str(unknown)
        advice = (
            "" if family.rule == "action" else f" The family `{family.name}` does not fit: choose `{ENVIRONMENT.name}`."
        )
        reason = f"{params.environment}: {unknown}.{advice}"
        path = "params.action_field" if is_field else "params.family"
        raise Invalid.at(path, reason, code="action_misfit") from None


def rules_of(form: ActionForm, family: CommandFamily, *, hints: bool) -> Rules:
    if family.rule == "action":
        return Rules(read=form.read, fallback=None, asks_hint=lambda _: False)
    return Rules(
        read=lambda reply: command_in(reply, family),
        fallback=family.fallback,
        asks_hint=lambda command: bool(family.hint) and family.hint in command,
        hints=hints,
    )


def check_address(address: str) -> None:
    """Raise `Invalid` unless this is the address of a server, on a host that model servers may have too."""
    if not address.startswith(SCHEMES):
        reason = "An environment is `sandbox`, or the http(s):// or ws:// or wss:// address of an OpenEnv server."
        raise Invalid.at("params.environment", reason)
    if not can_play():
        reason = "Live environments need `websockets` on the server: pip install 'winnow-curation[live]'."
        raise Invalid.at("params.environment", reason, code="not_installed")
    try:
        refuse_private(address.replace("ws", "http", 1), MODELS)
    except Problem as problem:
        raise Invalid.at("params.environment", problem.detail, code=problem.code) from None


def command_in(reply: str, family: CommandFamily) -> str | None:
    found = extract(reply, family)
    if family.rule == "line":
        return found if score_command(reply, found, family).xtr else None
    if family.rule == "block":
        return found if found != reply.strip() else None
    return found if found.startswith(family.lead) else None


async def _retry_if_broken(play: Callable[[], Awaitable[PlayedEpisode]], address: str) -> PlayedEpisode:
    """Wait while the server is full; start a broken episode again, up to `MAX_ATTEMPTS` times, of which `MAX_TIMEOUTS`
    may end in a timeout; the episode counts them as `restarts`. Raise `EnvironmentDown` if the server does not answer a
    short request either."""
    deadline, pause, failures, timeouts = time.monotonic() + PATIENCE_SECONDS, FIRST_PAUSE, 0, 0
    while True:
        try:
            played = await play()
            return replace(played, figures={**played.figures, "restarts": failures})
        except EnvironmentFull:
            if time.monotonic() > deadline:
                raise
        except SandboxFailed as failed:
            if not await answers(address, CheckedNetwork()):
                raise EnvironmentDown(str(failed)) from failed
            failures, timeouts = failures + 1, timeouts + isinstance(failed, NoReply)
            if failures == MAX_ATTEMPTS or timeouts == MAX_TIMEOUTS:
                raise
        await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - spreads retries, guards nothing
        pause = min(LONGEST_PAUSE, 2 * pause)


def _bundles(run: Run, ids: Sequence[int]) -> Mapping[int, Bundle]:
    found = Scenario.objects.of(run.project).for_rollout().with_bundle().in_bulk(ids)
    return {pk: stored_bundle(scenario.text.bundle) for pk, scenario in found.items()}


def asked_of(row: SplitRow) -> AskedTask:
    return asked_task(row.text.fields, task_id=row.task_id, tier=row.tier, prompt=user_text(row))


def _system_of(row: SplitRow) -> str:
    """The system message of the row's prompt, so that a model is measured with the one it was trained with."""
    messages = row.text.messages
    is_system = messages and messages[0].get("role") in ("system", "developer")
    return content_of(messages[0]) if is_system else ""
