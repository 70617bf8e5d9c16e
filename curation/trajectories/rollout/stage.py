"""Rollout: a model works through each admitted scenario, every episode in a sandbox of its own."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.conf import settings

from curation.llm.client.completion import Request, Target
from curation.projects.instructions.texts import Instructions
from curation.runs.calls.targets import call_params, run_instructions, run_target
from curation.runs.kinds import ItemFailed, ItemSkipped, LlmContext, PlannedItem, Write
from curation.runs.models import Item, Run
from curation.runs.workers.sandbox import backend, labels_of, shell_environment
from curation.scenarios.bundles.document import Bundle, setup_of, stored_bundle
from curation.scenarios.models import Scenario
from curation.trajectories.params import RolloutParams, matching_scenarios
from curation.trajectories.rollout.record import RolledOut, record_episode
from curation.trajectories.rollout.reply import OPERATORS, reply_of
from sandbox.agent.episode import EpisodeLimits, Message, Reply, run_episode
from sandbox.agent.shell_environment import ShellEnvironment, Task
from sandbox.agent.tools import functions_of
from sandbox.errors import SetupRefused
from sandbox.protocol import Backend, Limits

CHUNK = 2000
# Output of one command that the model sees: a screen of log, and little enough that thirty turns fit a context.
OUTPUT_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class RolloutPlan:
    """What all episodes of a shard share."""

    target: Target
    instructions: Instructions
    params: Mapping[str, object]
    backend: Backend


@dataclass(frozen=True, slots=True)
class RolloutJob:
    """One episode to play. An edit of the scenario makes it a draft, which is not rolled out."""

    plan: RolloutPlan
    scenario: Scenario
    bundle: Bundle


class RolloutStage:
    name = "rollout"
    queue = "rollout"

    def __init__(self, params: RolloutParams) -> None:
        self._params = params
        self.most_open = settings.SANDBOX_SESSIONS
        self._backend: Backend | None = None

    def targets(self, run: Run) -> Sequence[Target]:
        """Called once per shard: without a working sandbox the run ends here and says what to install."""
        self._backend = backend()
        return [run_target(run, self._params.model)]

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        scenarios = matching_scenarios(run.project, self._params.filter).order_by("id").values_list("pk", flat=True)
        for scenario_id in scenarios.iterator(CHUNK):
            for index in range(self._params.samples):
                yield PlannedItem(f"{scenario_id}:{index}", scenario_id, {"sample_index": index})

    def load(self, run: Run, items: Sequence[Item]) -> dict[int, RolloutJob]:
        given = run.settings.generation
        target = run_target(run, self._params.model)
        params = call_params(target, {"temperature": given.temperature, "max_tokens": given.max_tokens})
        instructions = run_instructions(run, OPERATORS[self._params.tools])
        plan = RolloutPlan(target, instructions, params, self._backend or backend())
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
        tools = job.bundle.offered() if self._params.tools else None
        functions = [] if tools is None else functions_of(tools)
        reused: list[int] = []

        async def complete(messages: Sequence[Message]) -> Reply:
            request = Request(messages, plan.params, sample_index=index, tools=functions)
            recorded = await context.ask(item, plan.target, request, instructions_hash=plan.instructions.sha256)
            if recorded.cached:
                reused.append(recorded.call_id)
            return reply_of(recorded.completion)

        try:
            episode = await run_episode(
                open_environment=lambda: self._environment(job, item),
                complete=complete,
                instructions=plan.instructions.text,
                expected_terminal=job.bundle.expected_terminal,
                limits=EpisodeLimits(self._params.max_turns, self._params.episode_timeout),
                tools=tools,
            )
        except SetupRefused as refused:
            raise ItemFailed(f"the sandbox refuses the scenario: {refused}") from refused
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
                functions=functions,
                reused_calls=reused,
            )
        )
        if episode.error:
            # The broken rollout is saved too; a retry replaces it.
            raise ItemFailed(f"infrastructure: {episode.error}", write)
        return write

    def _environment(self, job: RolloutJob, item: Item) -> ShellEnvironment:
        setup = setup_of(job.bundle, limits=limits_of(self._params), labels=labels_of(item))
        task = Task(setup, job.bundle.checker, job.bundle.expected_terminal)
        return shell_environment(task, job.plan.backend, command_seconds=self._params.command_timeout)


def limits_of(params: RolloutParams) -> Limits:
    """The limits of a sandbox session with these parameters."""
    return Limits(output=OUTPUT_BYTES, command_seconds=params.command_timeout)
