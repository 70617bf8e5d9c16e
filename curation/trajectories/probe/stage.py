"""The rounds of a probe: rollouts go on after each action of the comparisons that are undecided."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from django.db.models import F, Q

from curation.runs.calls.record import reused_result
from curation.runs.kinds import ItemFailed, ItemSkipped, Json, LlmContext, PlannedItem, Write
from curation.runs.models import Item, Run
from curation.scenarios.bundles.document import stored_bundle
from curation.trajectories.models import NEVER_NEGATIVE, StepAdvantage, StepValue, Trajectory
from curation.trajectories.params import ProbeParams
from curation.trajectories.probe.values import settle
from curation.trajectories.rollout.stage import OperatorStage, RolloutJob, play
from curation.trajectories.shell import turns_of
from judging.statistics.values import ActionVerdict
from sandbox.agent.episode import EpisodeTurn
from sandbox.errors import ReplayDiffers

ROUND = "round "


class RoundStage(OperatorStage[ProbeParams]):
    movable: ClassVar = True

    def __init__(self, params: ProbeParams, number: int) -> None:
        """`number` counts from 1."""
        super().__init__(params)
        self.name, self._number = f"{ROUND}{number}", number

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        """The same number of rollouts after each action of an undecided step, until the run has its most."""
        rows = StepAdvantage.objects.filter(value__run=run, verdict__in=[ActionVerdict.OPEN, ActionVerdict.LIKELY])
        earlier = Item.objects.filter(run=run, stage__startswith=ROUND).exclude(stage=self.name)
        left = self._params.most_rollouts - earlier.count()
        states: dict[str, StepValue] = {}
        for row in rows.select_related("value", "against").order_by("id"):
            for value in (row.value, row.against):
                if not value.ended:
                    states.setdefault(value.key, value)
        samples = self._params.samples
        for key, value in list(states.items())[: -(-left // samples)]:
            for index in range(min(samples, left)):
                number = (self._number - 1) * samples + index
                yield PlannedItem(f"{key}:{number}", value.trajectory_id, {"at": value.at, "key": key, "index": number})
            left -= samples

    def load(self, run: Run, items: Sequence[Item]) -> dict[int, RolloutJob]:
        plan = self.episodes(run)
        ids = {item.target_id for item in items if item.target_id is not None}
        rows = Trajectory.objects.of(run.project).to_replay().in_bulk(ids)
        return {
            item.pk: RolloutJob(
                plan, row.scenario, stored_bundle(row.scenario.text.bundle), _turns_before(row, item.data["at"])
            )
            for item in items
            if (row := rows.get(item.target_id or 0)) is not None
            and row.scenario is not None
            and row.scenario.bundle_sha256 == row.bundle_sha256
        }

    async def work(self, context: LlmContext, item: Item, job: RolloutJob | None) -> Write:
        if job is None:
            raise ItemSkipped("its trajectory was deleted, or its scenario was edited")
        reused: list[int] = []
        try:
            episode = await play(
                context,
                item,
                job.plan,
                job.bundle,
                index=item.data["index"],
                reused=reused,
                begun=job.begun,
                fresh=True,
            )
        except ReplayDiffers as differs:
            raise ItemSkipped(f"its state cannot be rebuilt: {differs}") from differs
        if episode.error:
            raise ItemFailed(f"infrastructure: {episode.error}")

        def write() -> Json:
            if episode.outcome not in NEVER_NEGATIVE:
                self._count(context.run, item.data["key"], solved=episode.keep)
            return {"outcome": episode.outcome, "tokens": episode.tokens, **reused_result(reused)}

        return write

    def _count(self, run: Run, key: str, *, solved: bool) -> None:
        values = StepValue.objects.filter(run=run, key=key)
        values.update(rollouts=F("rollouts") + 1, solved=F("solved") + int(solved))
        same = StepAdvantage.objects.filter(Q(value__key=key) | Q(against__key=key), value__run=run)
        settle(same, self._params)


def _turns_before(row: Trajectory, at: int) -> list[EpisodeTurn]:
    """The actions and outputs up to the step, without the orientation, which a new session shows itself."""
    turns = [turn for turn in turns_of(row.text.steps[: at + 1]) if turn["kind"] != "orientation"]
    return [EpisodeTurn(str(turn["kind"]), str(turn["text"]), exit_code=turn.get("exit_code")) for turn in turns]
