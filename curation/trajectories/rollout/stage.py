"""Rollout: a model works through each admitted scenario, every episode in a sandbox of its own."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from django.conf import settings

from curation.llm.client.completion import Completion, CompletionRequest, EndpointTarget
from curation.llm.client.tokens import ASKED
from curation.projects.instructions.texts import Instructions
from curation.runs.calls.targets import call_params, run_instructions, run_target
from curation.runs.kinds import ItemFailed, ItemSkipped, LlmContext, PlannedItem, Write
from curation.runs.models import Item, Run
from curation.runs.workers.sandbox import backend, labels_of, shell_environment
from curation.scenarios.bundles.document import Bundle, setup_of, stored_bundle
from curation.scenarios.models import Scenario
from curation.trajectories.params import RolloutParams, matching_scenarios
from curation.trajectories.rollout.record import RolledOut, record_episode
from judging.messages import without_calls
from sandbox.agent.episode import AgentEpisode, EpisodeLimits, EpisodeTurn, Message, ModelReply, run_episode
from sandbox.agent.shell_environment import ShellEnvironment, ShellTask
from sandbox.agent.tools import RequestedCall, functions_of
from sandbox.errors import SetupRefused
from sandbox.protocol import SandboxBackend, SessionLimits

# Names of the instructions of an operator that writes commands, and of one that calls functions.
OPERATORS = {False: "operator", True: "operator_tools"}


def reply_of(answer: Completion) -> ModelReply:
    """Return the reply. A call without an id, which some servers leave out, gets its place as one."""
    calls = [
        RequestedCall(
            str(call.get("id") or f"call_{place}"), str(call["function"]["name"]), str(call["function"]["arguments"])
        )
        for place, call in enumerate(answer.tool_calls)
    ]
    text = without_calls(answer.text, answer.tool_calls)
    tokens = (answer.tokens_in or 0) + (answer.tokens_out or 0)
    return ModelReply(text, answer.thinking, answer.finish_reason, tokens, calls, answer.tokens)


CHUNK = 2000
# Output of one command that the model sees: a screen of log, and little enough that thirty turns fit a context.
OUTPUT_BYTES = 16 * 1024


class EpisodeParams(Protocol):
    """The parameters of episodes, among those of a kind of run."""

    model: str
    tools: bool
    max_turns: int
    command_timeout: float
    episode_timeout: float


E = TypeVar("E", bound=EpisodeParams)


@dataclass(frozen=True, slots=True)
class RolloutPlan:
    """What all episodes of a shard share."""

    target: EndpointTarget
    instructions: Instructions
    params: Mapping[str, object]
    backend: SandboxBackend
    episodes: EpisodeParams


def plan_of(run: Run, params: EpisodeParams, rooms: SandboxBackend, *, instructions: str = "") -> RolloutPlan:
    """`instructions` names others than the operator's."""
    given = run.settings.generation
    target = run_target(run, params.model)
    calls = call_params(target, {"temperature": given.temperature, "max_tokens": given.max_tokens})
    texts = run_instructions(run, instructions or OPERATORS[params.tools])
    return RolloutPlan(target, texts, calls, rooms, params)


async def play(
    context: LlmContext,
    item: Item,
    plan: RolloutPlan,
    bundle: Bundle,
    *,
    index: int,
    reused: list[int],
    begun: Sequence[EpisodeTurn] = (),
    fresh: bool = False,
) -> AgentEpisode:
    """Play one episode of a scenario, or go on with one that was `begun`, and add the ids of the recorded calls that it
    uses again to `reused`. `fresh`: no answer comes from another item. Raises `ItemFailed` if the sandbox refuses the
    scenario, and `ReplayDiffers`."""
    params = plan.episodes
    tools = bundle.offered() if params.tools else None
    functions = [] if tools is None else functions_of(tools)

    async def complete(messages: Sequence[Message]) -> ModelReply:
        request = CompletionRequest(messages, plan.params, sample_index=index, tools=functions)
        recorded = await context.ask(
            item, plan.target, request, instructions_hash=plan.instructions.sha256, fresh=fresh
        )
        if recorded.cached:
            reused.append(recorded.call_id)
        return reply_of(recorded.completion)

    def environment() -> ShellEnvironment:
        setup = setup_of(bundle, limits=limits_of(params.command_timeout), labels=labels_of(item))
        task = ShellTask(setup, bundle.checker, bundle.expected_terminal)
        return shell_environment(task, plan.backend, command_seconds=params.command_timeout)

    try:
        return await run_episode(
            open_environment=environment,
            complete=complete,
            instructions=plan.instructions.text,
            expected_terminal=bundle.expected_terminal,
            limits=EpisodeLimits(params.max_turns, params.episode_timeout),
            tools=tools,
            begun=begun,
        )
    except SetupRefused as refused:
        raise ItemFailed(f"the sandbox refuses the scenario: {refused}") from refused


@dataclass(frozen=True, slots=True)
class RolloutJob:
    """One episode to play, after the turns that have `begun` it. An edit of the scenario makes it a draft, which is not
    rolled out."""

    plan: RolloutPlan
    scenario: Scenario
    bundle: Bundle
    begun: Sequence[EpisodeTurn] = ()


class OperatorStage(Generic[E]):
    """A stage whose items each play an episode in a sandbox."""

    queue = "rollout"

    def __init__(self, params: E) -> None:
        self._params = params
        self.most_open = settings.SANDBOX_SESSIONS
        self._backend: SandboxBackend | None = None

    def targets(self, run: Run) -> Sequence[EndpointTarget]:
        """Called once per shard: without a working sandbox the run ends here and says what to install."""
        self._backend = backend()
        return [run_target(run, self._params.model)]

    def episodes(self, run: Run) -> RolloutPlan:
        return plan_of(run, self._params, self._backend or backend())


class RolloutStage(OperatorStage[RolloutParams]):
    name = "rollout"

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        scenarios = matching_scenarios(run.project, self._params.filter).order_by("id").values_list("pk", flat=True)
        for scenario_id in scenarios.iterator(CHUNK):
            for index in range(self._params.samples):
                yield PlannedItem(f"{scenario_id}:{index}", scenario_id, {"sample_index": index})

    def load(self, run: Run, items: Sequence[Item]) -> dict[int, RolloutJob]:
        plan = self.episodes(run)
        if self._params.token_ids:
            plan = replace(plan, params={**ASKED, **plan.params})
        ids = {item.target_id for item in items if item.target_id is not None}
        found = Scenario.objects.of(run.project).for_rollout().with_bundle().in_bulk(ids)
        bundles = {pk: stored_bundle(scenario.text.bundle) for pk, scenario in found.items()}
        return {
            item.pk: RolloutJob(plan, found[item.target_id], bundles[item.target_id])
            for item in items
            if item.target_id in found
        }

    async def work(self, context: LlmContext, item: Item, job: RolloutJob | None) -> Write:
        if job is None:
            raise ItemSkipped("its scenario was deleted, or is no longer admitted")
        plan, index = job.plan, int(item.data["sample_index"])
        reused: list[int] = []
        episode = await play(context, item, plan, job.bundle, index=index, reused=reused)
        write = record_episode(
            RolledOut(
                run=context.run,
                scenario=job.scenario,
                bundle=job.bundle,
                sample_index=index,
                model=plan.target.name,
                instructions_hash=plan.instructions.sha256,
                backend=plan.backend.name,
                episode=episode,
                functions=functions_of(job.bundle.offered()) if self._params.tools else [],
                reused_calls=reused,
            )
        )
        if episode.error:
            # The broken rollout is saved too; a retry replaces it.
            raise ItemFailed(f"infrastructure: {episode.error}", write)
        return write


def limits_of(command_seconds: float) -> SessionLimits:
    """The limits of a sandbox session whose commands may take so long."""
    return SessionLimits(output=OUTPUT_BYTES, command_seconds=command_seconds)
