"""Shorten: play a trajectory's commands without its useless steps, and record the session if it is kept."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import ClassVar

from curation.projects.models import Project
from curation.runs.kinds import ItemFailed, ItemSkipped, Json, PlannedItem, StageOf, WorkContext, Write
from curation.runs.models import Item, ItemState, Run
from curation.runs.workers.sandbox import backend, labels_of, shell_environment
from curation.scenarios.bundles.document import Bundle, setup_of, stored_bundle
from curation.trajectories.models import StepAdvantage, StepValue, Trajectory, TrajectoryQuerySet
from curation.trajectories.params import ShortenParams, matching_trajectories
from curation.trajectories.replay import limits_of_rollout, planned_replays, replay_refusal, trajectory_to_replay
from curation.trajectories.rollout.record import RolledOut, record_episode
from curation.trajectories.shell import action_of
from sandbox.agent.episode import AgentEpisode, EpisodeLimits, Message, ModelReply, run_episode
from sandbox.agent.shell_environment import ShellEnvironment, ShellTask
from sandbox.errors import SetupRefused
from sandbox.protocol import SessionLimits

NOTHING = "no step of it is known to be useless"


class ShortenStage(StageOf[ShortenParams]):
    name = "shorten"
    movable: ClassVar = True
    queue = "sandbox"

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        items = enumerate(planned_replays(rows_to_shorten(run.project, self._params)))
        return (replace(item, data={"sample_index": index}) for index, item in items)

    def work(self, context: WorkContext, item: Item) -> Write:
        found = trajectory_to_replay(context, item)
        if found.scenario is None or (refusal := replay_refusal(found)):
            raise ItemSkipped(refusal)
        cut = useless_steps(found)
        if not cut:
            raise ItemSkipped(NOTHING)
        steps = [step for at, step in enumerate(found.text.steps) if at not in cut and step["source"] == "agent"]
        bundle = stored_bundle(found.scenario.text.bundle)
        episode, machine = _play(item, bundle, limits_of_rollout(found), [action_of(step) for step in steps])
        if episode.error:
            raise ItemFailed(f"infrastructure: {episode.error}")
        if not episode.keep:
            return lambda: {"solved": False, "cut": len(cut), "outcome": episode.outcome}
        record = record_episode(
            RolledOut(
                run=context.run,
                scenario=found.scenario,
                bundle=bundle,
                sample_index=item.data["sample_index"],
                model=found.model,
                instructions_hash=found.instructions_hash,
                backend=machine,
                episode=episode,
                functions=found.text.recorded.tools,
                reused_calls=(),
            )
        )

        def write() -> Json:
            result = record()
            Trajectory.objects.filter(pk=result.get("trajectory") or 0).update(shortened_from=found)
            return {"solved": True, "cut": len(cut), **result}

        return write


def rows_to_shorten(project: Project, params: ShortenParams) -> TrajectoryQuerySet:
    """The kept trajectories that match and have a step that a probe has found useless."""
    useless = StepAdvantage.objects.useless().filter(value__project=project)
    return (
        matching_trajectories(project, params.filter).kept().played().filter(pk__in=useless.values("value__trajectory"))
    )


def useless_steps(row: Trajectory) -> set[int]:
    """Return the positions of the steps that are useless by the last probe of the trajectory."""
    newest = StepValue.objects.newest_of(row.pk)
    return set(
        StepAdvantage.objects.useless().filter(value__in=newest.values("pk")).values_list("value__at", flat=True)
    )


def _play(item: Item, bundle: Bundle, limits: SessionLimits, commands: Sequence[str]) -> tuple[AgentEpisode, str]:
    """Return the episode of these commands, which no model says, and the name of the backend."""
    machine, said = backend(), iter(commands)

    async def complete(messages: Sequence[Message]) -> ModelReply:
        return ModelReply(f"```sh\n{next(said)}\n```")

    def environment() -> ShellEnvironment:
        nonlocal said
        said = iter(commands)
        setup = setup_of(bundle, limits=limits, labels=labels_of(item))
        task = ShellTask(setup, bundle.checker, bundle.expected_terminal)
        return shell_environment(task, machine, command_seconds=limits.command_seconds)

    playing = run_episode(
        open_environment=environment,
        complete=complete,
        instructions="",
        expected_terminal=bundle.expected_terminal,
        limits=EpisodeLimits(max_turns=len(commands)),
    )
    try:
        episode = asyncio.run(playing)
    except SetupRefused as refused:
        raise ItemFailed(f"the sandbox refuses the scenario: {refused}") from refused
    return replace(episode, exchange=()), machine.name


def shorten_figures(run: Run) -> Json:
    """The result: sessions that still solve the task, those that do not, and the steps cut from the former."""
    rows = Item.objects.filter(run=run, stage="shorten", state=ItemState.DONE).values_list("result", flat=True)
    total: Counter[str] = Counter()
    for result in rows:
        total.update({"solved": 1, "cut": result["cut"]} if result["solved"] else {"not_solved": 1})
    return {name: total[name] for name in ("solved", "not_solved", "cut")}
