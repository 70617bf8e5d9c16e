"""Stages `attack-n` and `solve-n`: a model attacks the checkers of scenarios, and another one works honestly through
those that the teacher mended. Both add to the reports of the gate."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import ClassVar

from django.conf import settings
from django.db.models import Q

from curation.llm.client.completion import EndpointTarget
from curation.runs.calls.record import reused_result
from curation.runs.calls.targets import run_instructions, run_target
from curation.runs.kinds import ItemFailed, ItemSkipped, Json, LlmContext, PlannedItem, Stage, Write
from curation.runs.models import Item, ItemState, Run
from curation.runs.workers.sandbox import backend, in_session_thread, labels_of
from curation.scenarios.bundles.document import stored_bundle
from curation.scenarios.bundles.harbor import stored_task
from curation.scenarios.gate.harbor import BACKEND
from curation.scenarios.gate.result import add_checks
from curation.scenarios.gate.stage import GateStage, reference_of, subject_of, task_of
from curation.scenarios.models import Family, Scenario, ScenarioQuerySet, ScenarioStatus
from curation.trajectories.attack.harbor import NOT_TRIED, SIGHTS, HarborJob, attack_task, honest_check, survived
from curation.trajectories.attack.mend import PROGRAMS, MendStage
from curation.trajectories.models import Outcome
from curation.trajectories.params import AttackParams, RolloutParams, scenarios_to_attack
from curation.trajectories.rollout.stage import RolloutJob, plan_of, play
from curation.web.text.storable import storable_json
from sandbox.agent.action import Ending
from sandbox.agent.episode import AgentEpisode
from sandbox.errors import SandboxFailed
from sandbox.gate.play import Rooms
from sandbox.gate.replay_attack import Attack, replay_attack
from sandbox.gate.report import Check, ReportLine
from sandbox.protocol import SandboxBackend

CHUNK = 2000
GONE = "its scenario was deleted, or is no longer admitted"


class _EpisodeStage:
    """One item per scenario, whose episodes come one after the other until one decides."""

    queue = "rollout"
    lasting: ClassVar = True
    movable: ClassVar = True
    instructions: ClassVar = ""

    def __init__(self, params: AttackParams, model: str) -> None:
        self._params, self._model = params, model
        self.most_open = settings.SANDBOX_SESSIONS
        self._backend: SandboxBackend | None = None

    def targets(self, run: Run) -> Sequence[EndpointTarget]:
        """Called once per shard: without a working sandbox the run ends here and says what to install."""
        if scenarios_to_attack(run.project, self._params.filter).filter(family=Family.SHELL).exists():
            self._backend = backend()
        return [run_target(run, self._model)]

    def load(self, run: Run, items: Sequence[Item]) -> dict[int, "RolloutJob | HarborJob"]:
        ids = {item.target_id for item in items if item.target_id is not None}
        found = Scenario.objects.of(run.project).admitted().with_bundle().in_bulk(ids)
        jobs: dict[int, RolloutJob | HarborJob] = {}
        harbor = [row for row in found.values() if row.family == Family.HARBOR]
        shell = [row for row in found.values() if row.family == Family.SHELL]
        if harbor:
            instructions, target = run_instructions(run, "attacker_harbor"), run_target(run, self._model)
            jobs |= {row.pk: HarborJob(row, stored_task(row.text.bundle), target, instructions) for row in harbor}
        if shell:
            given, rooms = episodes_of(self._params, self._model), self._backend or backend()
            plan = plan_of(run, given, rooms, instructions=self.instructions)
            jobs |= {row.pk: RolloutJob(plan, row, stored_bundle(row.text.bundle)) for row in shell}
        return {item.pk: jobs[item.target_id] for item in items if item.target_id in jobs}


class AttackStage(_EpisodeStage):
    """`number` counts from 1; a later one attacks the scenarios that were mended before it."""

    instructions: ClassVar = "attacker"

    def __init__(self, params: AttackParams, number: int) -> None:
        super().__init__(params, params.model)
        self.name, self._number = f"attack-{number}", number

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        if self._number == 1:
            rows = scenarios_to_attack(run.project, self._params.filter)
        else:
            rows = repaired_in(run, self._number - 1).admitted()
        return _planned(rows)

    async def work(self, context: LlmContext, item: Item, job: RolloutJob | HarborJob | None) -> Write:
        if job is None:
            raise ItemSkipped(GONE)
        reused: list[int] = []
        if isinstance(job, HarborJob):
            checks, machine = await attack_task(context, item, job, self._params, self._number, reused), BACKEND
        else:
            checks, machine = await self._attack(context, item, job, reused), job.plan.backend.name
        got_in = [check for check in checks if not check.passed]
        tried = any(check.reason != NOT_TRIED for check in checks)
        programs: Json = {}
        if isinstance(job, HarborJob):
            programs[PROGRAMS] = storable_json([check.transcript[0].command for check in got_in])

        def write() -> Json:
            found = _add(context.run, job.scenario, checks, ScenarioStatus.REJECTED, machine)
            return {"got_in": len(got_in), "tried": tried, **programs, **found, **reused_result(reused)}

        return write

    async def _attack(self, context: LlmContext, item: Item, job: RolloutJob, reused: list[int]) -> list[Check]:
        instructions, checks = job.plan.instructions, list[Check]()
        for sight in self._params.sights:
            shown = f"\nThe checker\n```sh\n{job.bundle.checker}\n```\n" if sight == "with" else ""
            plan = replace(job.plan, instructions=replace(instructions, text=instructions.text + shown))
            checks.append(await self._attacked(context, item, replace(job, plan=plan), sight, reused))
        return checks

    async def _attacked(self, context: LlmContext, item: Item, job: RolloutJob, sight: str, reused: list[int]) -> Check:
        """Attack until one attempt gets in. Later rounds have attempts of their own."""
        most, made = self._params.attempts, 0
        for number in range(1, most + 1):
            index = (self._number - 1) * most + number - 1
            episode = await play(context, item, job.plan, job.bundle, index=index, reused=reused)
            if episode.error:
                raise ItemFailed(f"infrastructure: {episode.error}")
            made += bool(episode.commands) and episode.outcome != Outcome.FORMAT_ERROR
            if episode.keep and (attack := await _replayed(item, job, episode)) and attack.undone:
                return Check(f"attack {number} {SIGHTS[sight]}", False, attack.undone, attack.lines)
        return survived(made, sight)


class SolveStage(_EpisodeStage):
    """A mended scenario that no episode solves is held: its checker may refuse honest work."""

    def __init__(self, params: AttackParams, number: int) -> None:
        super().__init__(params, params.solver)
        self.name, self._number = f"solve-{number}", number

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        return _planned(repaired_in(run, self._number).for_rollout())

    async def work(self, context: LlmContext, item: Item, job: RolloutJob | HarborJob | None) -> Write:
        if not isinstance(job, RolloutJob):
            raise ItemSkipped(GONE)
        reused: list[int] = []
        for index in range(self._params.samples):
            episode = await play(context, item, job.plan, job.bundle, index=index, reused=reused)
            if episode.error:
                raise ItemFailed(f"infrastructure: {episode.error}")
            if episode.keep:
                break
        check = honest_check(self._params.solver, episode.keep, _lines_of(episode))

        def write() -> Json:
            found = _add(context.run, job.scenario, [check], ScenarioStatus.HELD, job.plan.backend.name)
            return {"solved": episode.keep, **found, **reused_result(reused)}

        return write


def attack_stages(params: AttackParams) -> Sequence[Stage]:
    """Attack; and as often as the parameters say: repair, gate, honest work, and attack again."""
    stages: list[Stage] = [AttackStage(params, 1)]
    for number in range(1, params.repairs + 1 if params.teacher else 1):
        repair = MendStage(params, number, scenarios=_to_repair(number))
        gate = GateStage(repeats=params.repeats, again=False, scenarios=_drafts_of(number))
        gate.name = f"gate-{number}"
        stages += [repair, gate, SolveStage(params, number), AttackStage(params, number + 1)]
    return stages


def repaired_in(run: Run, number: int) -> ScenarioQuerySet:
    """The scenarios that the teacher changed in this round."""
    items = Item.objects.filter(run=run, stage=f"repair-{number}", state=ItemState.DONE, result__repaired=True)
    return Scenario.objects.of(run.project).filter(pk__in=items.values("target_id"))


def attack_figures(run: Run) -> Json:
    """Count the scenarios that were attacked, that no reply of the model attacked, that an attack got into, and that
    are admitted now."""
    items = Item.objects.filter(run=run, stage__startswith="attack-", state=ItemState.DONE)
    first = items.filter(stage="attack-1")
    not_tried = first.filter(result__tried=False).count()
    got_in = items.filter(result__got_in__gt=0).values("target_id").distinct()
    confirmed = Item.objects.filter(run=run, stage__startswith="solve-", state=ItemState.DONE, result__solved=True)
    repaired = Item.objects.filter(run=run, stage__startswith="repair-", result__repaired=True)
    is_proven = Q(pk__in=confirmed.values("target_id")) | Q(pk__in=repaired.values("target_id"), family=Family.HARBOR)
    mended = Scenario.objects.filter(is_proven, status=ScenarioStatus.ADMITTED)
    return {
        "attacked": first.count() - not_tried,
        "not_tried": not_tried,
        "got_in": got_in.count(),
        "mended": mended.count(),
    }


def episodes_of(params: AttackParams, model: str) -> RolloutParams:
    given = params.model_dump(include={"max_turns", "command_timeout", "episode_timeout"})
    return RolloutParams(model=model, **given)


def _to_repair(number: int) -> Callable[[Run], ScenarioQuerySet]:
    """The attacked scenarios. A Harbor task whose repair was refused is as it was, and goes to no other round."""

    def rows(run: Run) -> ScenarioQuerySet:
        done = Item.objects.filter(run=run, state=ItemState.DONE)
        first, last = done.filter(stage="attack-1"), done.filter(stage=f"attack-{number}", result__got_in__gt=0)
        shell = Q(pk__in=first.values("target_id"), family=Family.SHELL)
        harbor = Q(pk__in=last.values("target_id"), family=Family.HARBOR)
        return Scenario.objects.of(run.project).filter(shell | harbor)

    return rows


def _drafts_of(number: int) -> Callable[[Run], ScenarioQuerySet]:
    return lambda run: repaired_in(run, number).filter(status=ScenarioStatus.DRAFT)


def _planned(rows: ScenarioQuerySet) -> Iterable[PlannedItem]:
    for scenario_id in rows.order_by("id").values_list("pk", flat=True).iterator(CHUNK):
        yield PlannedItem(str(scenario_id), scenario_id)


def _add(run: Run, scenario: Scenario, checks: Sequence[Check], refused: ScenarioStatus, machine: str) -> Json:
    return add_checks(
        scenario_id=scenario.pk,
        bundle_sha256=scenario.bundle_sha256,
        run=run,
        checks=checks,
        refused=refused,
        backend=machine,
    )


async def _replayed(item: Item, job: RolloutJob, episode: AgentEpisode) -> Attack | None:
    """The rewarded episode, played again in new sandboxes."""

    def work(checkpoint: Callable[[], None]) -> Attack | None:
        rooms = Rooms(task_of(job.bundle, labels=labels_of(item)), job.plan.backend.session, checkpoint)
        ending = Ending(episode.terminal, episode.panic_reason)
        return replay_attack(rooms, reference_of(job.bundle), subject_of(job.bundle), episode.commands, ending)

    try:
        return await in_session_thread(work)
    except SandboxFailed as failed:
        raise ItemFailed(f"the sandbox failed, so nothing is known of the attack: {failed}") from failed


def _lines_of(episode: AgentEpisode) -> tuple[ReportLine, ...]:
    lines: list[ReportLine] = []
    for turn in episode.turns:
        if turn.kind == "action":
            lines.append(ReportLine(turn.text))
        elif turn.kind == "output":
            shown = turn.text.removesuffix(turn.prompt)
            lines[-1] = ReportLine(lines[-1].command, shown, turn.exit_code, turn.seconds)
    return tuple(lines)
