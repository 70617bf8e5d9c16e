"""Save a rollout: the trajectory, its texts, its sample. A repeated rollout replaces its rows."""

from collections.abc import Sequence
from dataclasses import dataclass

from curation.imports.layouts.session import Step
from curation.llm.client.tokens import COMPLETION, LOGPROBS
from curation.runs.calls.record import reused_result
from curation.runs.kinds import Json, Write
from curation.runs.models import Run
from curation.samples.models import Flag, SampleKind
from curation.samples.scores import SampleRow, trajectory_priority, upsert_samples
from curation.scenarios.bundles.document import Bundle
from curation.scenarios.claims.evidence import BundleEvidence
from curation.scenarios.models import Scenario
from curation.trajectories.models import ASKED, READ, FactState, ReplayState, Trajectory, TrajectoryText
from curation.trajectories.shell import steps_of
from curation.web.text.storable import storable, storable_json
from sandbox.agent.action import LoopFacts, loop_facts
from sandbox.agent.episode import AgentEpisode
from sandbox.gate.documentation import is_call_for_help
from sandbox.protocol import ProgramRun


def asked_facts(bundle: Bundle, runs: Sequence[ProgramRun] | None) -> dict[str, str]:
    """The two facts, as a trajectory's `axes` have them. `runs` is None where the kernel permits no record."""
    evidence = BundleEvidence(bundle)
    programs = {file.path for file in evidence.programs}
    if runs is None or not programs:
        return {READ: FactState.UNKNOWN, ASKED: FactState.UNKNOWN}
    depth = bundle.axes.get("doc_depth")
    helps = [run for run in runs if is_call_for_help(run) or (depth == "usage-error" and _is_bare(run, programs))]
    rest = [run for run in runs if run not in helps and run.path in programs]
    unclear = [run for run in rest if depth != "help" and not run.arguments]
    return {
        READ: _known(yes=bool(helps), unknown=bool(unclear or evidence.pages)),
        ASKED: _known(yes=len(rest) > len(unclear), unknown=bool(unclear)),
    }


def _is_bare(run: ProgramRun, programs: set[str]) -> bool:
    return run.path in programs and not run.arguments


def _known(*, yes: bool, unknown: bool) -> str:
    return FactState.YES if yes else FactState.UNKNOWN if unknown else FactState.NO


SOURCE = "scenarios"
MOST_REASON = 1000


@dataclass(frozen=True, slots=True)
class RolledOut:
    """An episode with its origin. `model` is the endpoint's name, `backend` the sandbox's; `functions` are those that
    the model could call, in OpenAI's form."""

    run: Run
    scenario: Scenario
    bundle: Bundle
    sample_index: int
    model: str
    instructions_hash: str
    backend: str
    episode: AgentEpisode
    functions: Sequence[Json]
    reused_calls: Sequence[int]


def record_episode(rolled: RolledOut) -> Write:
    """Return the write of one rollout; there is one row per run, scenario and sample index."""
    loops, episode = loop_facts(rolled.episode.commands), rolled.episode
    given: Json = {}
    if rolled.run.params.get("token_ids"):
        given["replies"] = sum(message["role"] == "assistant" for message in episode.exchange)
        given |= {name: sum(name in turn.metrics for turn in episode.turns) for name in (COMPLETION, LOGPROBS)}

    def write() -> Json:
        if not Scenario.objects.filter(pk=rolled.scenario.pk).exists():
            return {"left": "its scenario was deleted meanwhile"}
        row = _save(rolled, loops)
        result = {"trajectory": row.pk, "outcome": row.outcome, "keep": row.keep, **given}
        return {**result, **reused_result(rolled.reused_calls)}

    return write


def _save(rolled: RolledOut, loops: LoopFacts) -> Trajectory:
    episode, run, scenario = rolled.episode, rolled.run, rolled.scenario
    place = {"run": run, "scenario": scenario, "sample_index": rolled.sample_index}
    columns = _columns(rolled, loops)
    row = Trajectory(project_id=run.project_id, **place, **columns)
    row.sample_id = Trajectory.objects.filter(**place).values_list("sample_id", flat=True).first()
    row.sample_id = upsert_samples([_sample_row(rolled, loops, row)])[0].pk
    Trajectory.objects.bulk_create(
        [row], update_conflicts=True, unique_fields=list(place), update_fields=["sample", *columns]
    )
    text = TrajectoryText(
        trajectory=row,
        steps=storable_json(_steps(episode)),
        checker_output=storable(episode.checker.output if episode.checker else ""),
        exchange=storable_json([*episode.exchange, *_broken(episode)]),
        document=_document(rolled),
    )
    TrajectoryText.objects.bulk_create(
        [text],
        update_conflicts=True,
        unique_fields=["trajectory"],
        update_fields=["steps", "checker_output", "exchange", "document"],
    )
    return row


def _document(rolled: RolledOut) -> Json:
    if not rolled.functions:
        return {}
    return {"agent": {"name": "winnow", "version": "unknown", "tool_definitions": [*rolled.functions]}}


def _columns(rolled: RolledOut, loops: LoopFacts) -> Json:
    episode = rolled.episode
    return {
        "model": rolled.model,
        "instructions_hash": rolled.instructions_hash,
        "bundle_sha256": rolled.scenario.bundle_sha256,
        "backend": rolled.backend,
        "axes": asked_facts(rolled.bundle, episode.checker.runs if episode.checker else None),
        "terminal": episode.terminal,
        "panic_reason": storable(episode.panic_reason)[:MOST_REASON],
        "outcome": episode.outcome,
        "keep": episode.keep,
        "checker_passed": episode.checker.passed if episode.checker else None,
        "steps": len(_steps(episode)),
        "commands": loops.commands,
        "repeated_share": loops.repeated_share,
        "longest_repeat": loops.longest_repeat,
        "format_errors": episode.format_errors,
        "tokens": episode.tokens,
        "seconds": episode.seconds,
        "replay": ReplayState.NONE,
    }


def _sample_row(rolled: RolledOut, loops: LoopFacts, row: Trajectory) -> SampleRow:
    episode, scenario = rolled.episode, rolled.scenario
    flags = loops.looping * Flag.LOOP
    flags |= any(turn.truncated for turn in episode.turns) * Flag.TRUNCATED
    flags |= (episode.outcome == "infra_error") * Flag.INFRA
    commands = [turn.text for turn in episode.turns if turn.kind == "action"]
    return SampleRow(
        project_id=rolled.run.project_id,
        run_id=rolled.run.pk,
        existing_id=row.sample_id,
        kind=SampleKind.TRAJECTORY,
        score=None,
        bucket="",
        flags=int(flags),
        priority=priority_of_trajectory(row, looping=loops.looping),
        source=SOURCE,
        repo="",
        instance_id=scenario.name,
        action_style="",
        model=rolled.model,
        preview="; ".join(commands),
        body="\n".join([scenario.title, *(turn.text for turn in episode.turns)]),
        texts=[turn.text for turn in episode.turns],
        axes={axis: str(value) for axis, value in {**scenario.axes, **row.axes}.items()},
    )


def priority_of_trajectory(row: Trajectory, *, looping: bool) -> float:
    """The place of the trajectory's sample in the review queue."""
    return trajectory_priority(
        keep=row.keep,
        machine=row.is_machine_failure,
        looping=looping,
        passed=bool(row.checker_passed),
        differs=row.replay == ReplayState.DIFFERS,
    )


def _steps(episode: AgentEpisode) -> list[Step]:
    return steps_of([turn.as_json() for turn in episode.turns])


def _broken(episode: AgentEpisode) -> list[Json]:
    """The error as the last message; it was not sent to the model."""
    return [{"role": "sandbox", "content": episode.error}] if episode.error else []
