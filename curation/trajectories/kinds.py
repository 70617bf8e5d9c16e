"""The run kinds `rollout`, `replay` and `pairs`."""

from collections.abc import Mapping, Sequence

from curation.projects.models import Project
from curation.runs.calls.targets import targets_named
from curation.runs.kinds import Estimate, Json, Kind, Stage
from curation.runs.models import Run
from curation.runs.workers.sandbox_report import require_sandbox
from curation.trajectories.pages.run_section import pairs_section, replay_section, rollout_section
from curation.trajectories.pairs.stage import PairStage, batches_of, pair_figures, scenarios_with_both
from curation.trajectories.params import PairParams, ReplayParams, RolloutParams
from curation.trajectories.replay.stage import ReplayStage
from curation.trajectories.rollout.estimate import rollout_estimate
from curation.trajectories.rollout.figures import replay_figures, rollout_figures
from curation.trajectories.rollout.stage import RolloutStage
from curation.trajectories.selection import rollable_in, trajectories_in
from curation.web.problems import Invalid


class RolloutRun(Kind[RolloutParams]):
    name = "rollout"
    title = "Rollout: a model works through scenarios"
    params = RolloutParams
    section_template = "trajectories/rollout/_run_section.html"

    def stages(self, params: RolloutParams) -> Sequence[Stage]:
        return [RolloutStage(params)]

    def check(self, project: Project, params: RolloutParams) -> None:
        targets_named(project, [params.model], "model")
        if not rollable_in(project, params.filter).exists():
            detail = "No admitted scenario matches: only scenarios that passed the gate can be rolled out."
            raise Invalid(detail, code="no_scenarios")
        require_sandbox()

    def estimate(self, project: Project, params: RolloutParams) -> Estimate:
        return rollout_estimate(project, params)

    def finish(self, run: Run, params: RolloutParams) -> Json:
        return rollout_figures(run)

    def section(self, run: Run) -> Mapping[str, object]:
        return rollout_section(run)


class ReplayRun(Kind[ReplayParams]):
    name = "replay"
    title = "Replay: recorded commands in a fresh sandbox"
    params = ReplayParams
    section_template = "trajectories/replay/_run_section.html"

    def stages(self, params: ReplayParams) -> Sequence[Stage]:
        return [ReplayStage(params)]

    def check(self, project: Project, params: ReplayParams) -> None:
        if not trajectories_in(project, params.filter).exists():
            raise Invalid("No trajectory matches, so there is nothing to replay.", code="no_trajectories")
        require_sandbox()

    def estimate(self, project: Project, params: ReplayParams) -> Estimate:
        return Estimate(items=trajectories_in(project, params.filter).count(), notes=("No model is called.",))

    def finish(self, run: Run, params: ReplayParams) -> Json:
        return replay_figures(run)

    def section(self, run: Run) -> Mapping[str, object]:
        return replay_section(run)


class PairsRun(Kind[PairParams]):
    name = "pairs"
    title = "Pairs: kept trajectories over rejected ones"
    params = PairParams
    section_template = "trajectories/pairs/_run_section.html"

    def stages(self, params: PairParams) -> Sequence[Stage]:
        return [PairStage(params)]

    def check(self, project: Project, params: PairParams) -> None:
        trajectories_in(project, params.filter)

    def estimate(self, project: Project, params: PairParams) -> Estimate:
        batches = batches_of(scenarios_with_both(project, params.filter))
        return Estimate(items=len(batches), notes=("No model is called.",))

    def finish(self, run: Run, params: PairParams) -> Json:
        return pair_figures(run)

    def section(self, run: Run) -> Mapping[str, object]:
        return pairs_section(run)
