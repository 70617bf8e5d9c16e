"""The run kinds around trajectories and the stages each is made of."""

from curation.projects.models import Project
from curation.runs.calls.targets import targets_named
from curation.runs.kinds import Estimate, Kind, register
from curation.runs.workers.sandbox_report import require_sandbox
from curation.trajectories.pairs.stage import PairStage, batches_of, pair_figures, scenarios_with_both
from curation.trajectories.params import PairParams, ReplayParams, RolloutParams
from curation.trajectories.replay.stage import ReplayStage
from curation.trajectories.rollout.estimate import free_estimate, rollout_estimate
from curation.trajectories.rollout.figures import replay_figures, rollout_figures
from curation.trajectories.rollout.stage import RolloutStage
from curation.trajectories.selection import rollable_in, trajectories_in
from curation.web.problems import Invalid


def register_kinds() -> None:
    for kind in (ROLLOUT, REPLAY, PAIRS):
        register(kind)


def _check_rollout(project: Project, params: RolloutParams) -> None:
    targets_named(project, [params.model], "model")
    if not rollable_in(project, params.filter).exists():
        raise Invalid("No admitted scenario matches: only what the gate has proven is rolled out.", code="no_scenarios")
    require_sandbox()


def _check_replay(project: Project, params: ReplayParams) -> None:
    if not trajectories_in(project, params.filter).exists():
        raise Invalid("No trajectory matches, so there is nothing to replay.", code="no_trajectories")
    require_sandbox()


def _check_pairs(project: Project, params: PairParams) -> None:
    trajectories_in(project, params.filter)


def _replay_estimate(project: Project, params: ReplayParams) -> Estimate:
    return free_estimate(trajectories_in(project, params.filter).count())


def _pair_estimate(project: Project, params: PairParams) -> Estimate:
    return free_estimate(len(batches_of(scenarios_with_both(project, params.filter))))


ROLLOUT = Kind(
    name="rollout",
    title="Rollout: a model works through scenarios",
    params=RolloutParams,
    stages=lambda params: [RolloutStage(params)],
    check=_check_rollout,
    estimate=rollout_estimate,
    finish=rollout_figures,
)
REPLAY = Kind(
    name="replay",
    title="Replay: recorded commands in a fresh sandbox",
    params=ReplayParams,
    stages=lambda params: [ReplayStage(params)],
    check=_check_replay,
    estimate=_replay_estimate,
    finish=replay_figures,
)
PAIRS = Kind(
    name="pairs",
    title="Pairs: kept trajectories over rejected ones",
    params=PairParams,
    stages=lambda params: [PairStage(params)],
    check=_check_pairs,
    estimate=_pair_estimate,
    finish=pair_figures,
)
