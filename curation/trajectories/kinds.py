"""The run kinds `rollout`, `attack`, `harbor`, `replay`, `probe`, `shorten` and `pairs`."""

from collections.abc import Mapping, Sequence

from django.conf import settings
from django.urls import reverse

from curation.projects.models import Project
from curation.runs.calls.targets import targets_named
from curation.runs.kinds import Estimate, Json, Kind, Pipeline, RunFact, Stage
from curation.runs.models import Run
from curation.runs.workers.sandbox_report import require_sandbox
from curation.samples.list.pages import review_steps
from curation.scenarios.filters import ScenarioFilter
from curation.scenarios.gate.harbor import require_harbor
from curation.scenarios.gate.kind import TEMPLATE, gate_section
from curation.scenarios.models import Family
from curation.trajectories.attack.stage import attack_figures, attack_stages, episodes_of
from curation.trajectories.filters import TrajectoryFilter
from curation.trajectories.harbor.estimate import estimated
from curation.trajectories.harbor.plan import HarborParams, check_plan
from curation.trajectories.harbor.stage import HarborStage
from curation.trajectories.pages.run_section import (
    harbor_section,
    pairs_section,
    probe_section,
    replay_section,
    rollout_section,
)
from curation.trajectories.pairs import PairStage, pair_figures, scenarios_to_pair, tasks_to_pair
from curation.trajectories.params import (
    AttackParams,
    PairParams,
    ProbeParams,
    ReplayParams,
    RolloutParams,
    ShortenParams,
    matching_scenarios,
    matching_trajectories,
    scenarios_to_attack,
    trajectories_to_pair,
)
from curation.trajectories.probe.choose import ChooseStage, states_to_value
from curation.trajectories.probe.stage import RoundStage
from curation.trajectories.probe.states import StatesStage, count_not_probed, rows_to_probe
from curation.trajectories.probe.values import probe_figures
from curation.trajectories.replay import ReplayStage, replay_figures
from curation.trajectories.rollout.balance import rollout_figures
from curation.trajectories.rollout.stage import EpisodeParams, RolloutStage
from curation.trajectories.shorten import ShortenStage, rows_to_shorten, shorten_figures
from curation.web.problems import Invalid
from curation.web.refusals import all_checks
from curation.web.text.figures import counted

# Tokens of the instructions and the orientation, of a reply, and of each turn's part of the conversation.
OPENING_TOKENS, REPLY_TOKENS, TURN_TOKENS = 700, 60, 200
# Tokens of a Harbor task with the attacks before, and of a program that attacks it.
TASK_TOKENS, PROGRAM_TOKENS = 6000, 400


class RolloutRun(Kind[RolloutParams]):
    name = "rollout"
    title = "Rollout: a model works through scenarios"
    pipeline = Pipeline.SCENARIOS
    summary = "A model works through admitted scenarios in sandboxes. Each episode becomes a trajectory."
    filter = ScenarioFilter
    params = RolloutParams
    section_template = "trajectories/rollout/_run_section.html"

    def stages(self, params: RolloutParams) -> Sequence[Stage]:
        return [RolloutStage(params)]

    def check(self, project: Project, params: RolloutParams) -> None:
        with all_checks() as check:
            with check():
                targets_named(project, [params.model], "model")
            with check():
                if not matching_scenarios(project, params.filter).exists():
                    detail = "No admitted scenario matches: only scenarios that passed the gate can be rolled out."
                    raise Invalid.at("params.filter", detail, code="no_scenarios")
            with check():
                require_sandbox()

    def estimate(self, project: Project, params: RolloutParams) -> Estimate:
        episodes = matching_scenarios(project, params.filter).count() * params.samples
        most = f"At most {counted(params.max_turns, 'turn')} in each of {counted(episodes, 'episode')}"
        return Estimate.total([estimate_episodes(project, params, episodes)], f"{most}; most episodes end sooner.")

    def finish(self, run: Run, params: RolloutParams) -> Json:
        return rollout_figures(run)

    def next_steps(self, run: Run) -> Sequence[tuple[str, str]]:
        return review_steps(run)

    def conclude(self, run: Run) -> str:
        kept, made = run.result["kept"], run.result["trajectories"]
        return f"{kept:,} of {counted(made, 'episode')} {'is' if kept == 1 else 'are'} kept." if made else ""

    def section(self, run: Run) -> Mapping[str, object]:
        return rollout_section(run)


def estimate_episodes(project: Project, params: EpisodeParams, episodes: int) -> Estimate:
    """An upper bound: every episode uses all its turns, and each turn sends all earlier ones again."""
    target = targets_named(project, [params.model], "model")[0]
    turns = params.max_turns
    calls = episodes * turns
    tokens_in = calls * OPENING_TOKENS + episodes * TURN_TOKENS * turns * (turns - 1) // 2
    tokens_out = calls * REPLY_TOKENS
    return Estimate.of_calls(target, items=episodes, calls=calls, tokens_in=tokens_in, tokens_out=tokens_out)


class AttackRun(Kind[AttackParams]):
    name = "attack"
    title = "Attack: a model tries to be rewarded without the work"
    pipeline = Pipeline.SCENARIOS
    summary = "A model attacks the checkers of admitted scenarios. A teacher mends what gets in."
    filter = ScenarioFilter
    params = AttackParams
    section_template = TEMPLATE
    tells_of_samples = False

    def stages(self, params: AttackParams) -> Sequence[Stage]:
        return attack_stages(params)

    def check(self, project: Project, params: AttackParams) -> None:
        with all_checks() as check:
            for name in ("model", "teacher", "solver"):
                if name == "model" or getattr(params, name):
                    with check():
                        targets_named(project, [getattr(params, name)], name)
            families: set[str] = set()
            with check():
                families = set(scenarios_to_attack(project, params.filter).values_list("family", flat=True).distinct())
                if not families:
                    detail = "No admitted scenario matches: only scenarios that passed the gate are attacked."
                    raise Invalid.at("params.filter", detail, code="no_scenarios")
                if Family.SHELL in families:
                    require_sandbox()
                if Family.HARBOR in families:
                    require_harbor()
            with check():
                if params.solver and not params.teacher:
                    raise Invalid.at("params.teacher", "A solver works through what a teacher mends: name a teacher.")
                if params.teacher and not params.solver and families != {Family.HARBOR}:
                    detail = "A repair needs a solver that works honestly afterwards; only Harbor tasks do without."
                    raise Invalid.at("params.solver", detail)

    def estimate(self, project: Project, params: AttackParams) -> Estimate:
        """All attempts, and no repair: how many get in is what the run finds out."""
        rows, each = scenarios_to_attack(project, params.filter), params.attempts * len(params.sights)
        episodes = rows.filter(family=Family.SHELL).count() * each
        trials = rows.filter(family=Family.HARBOR).count() * each
        note = f"At most {counted(episodes + trials, 'attack')}; a scenario's end with the first that gets in."
        if trials:
            note += f" Harbor runs up to {counted(trials, 'trial')} of half a minute, and two more for a rewarded one."
        more = (
            " Repairs, honest work and the attacks after it come on top." if params.teacher and params.repairs else ""
        )
        attacks = estimate_episodes(project, episodes_of(params, params.model), episodes)
        target = targets_named(project, [params.model], "model")[0]
        tokens_in, tokens_out = trials * TASK_TOKENS, trials * PROGRAM_TOKENS
        programs = Estimate.of_calls(target, calls=trials, tokens_in=tokens_in, tokens_out=tokens_out)
        return Estimate.total([attacks, programs], note + more)

    def finish(self, run: Run, params: AttackParams) -> Json:
        return attack_figures(run)

    def conclude(self, run: Run) -> str:
        got_in, attacked, mended = (run.result[name] for name in ("got_in", "attacked", "mended"))
        said = f"Attacks got into {got_in:,} of {counted(attacked, 'scenario')}; {mended:,} mended and admitted again."
        if not (not_tried := run.result.get("not_tried")):
            return said
        return f"{said} Not tried: {counted(not_tried, 'scenario')}, for which no reply of the model was an attack."

    def section(self, run: Run) -> Mapping[str, object]:
        return gate_section(run)


class HarborRun(Kind[HarborParams]):
    name = "harbor"
    title = "Harbor: agents work through Harbor tasks"
    pipeline = Pipeline.SCENARIOS
    summary = "Harbor runs tasks with any of its agents, in Docker or at a provider. Each trial becomes a trajectory."
    filter = ScenarioFilter
    params = HarborParams
    section_template = "trajectories/harbor/_run_section.html"

    def stages(self, params: HarborParams) -> Sequence[Stage]:
        return [HarborStage(params)]

    def check(self, project: Project, params: HarborParams) -> None:
        check_plan(project, params)

    def choices(self, project: Project) -> Mapping[str, Sequence[tuple[str, str]]]:
        offered = [one for one in settings.HARBOR_PROVIDERS if one.permits(project.slug)]
        return {"provider": [(one.name, f"{one.name}: needs {one.needs}") for one in offered]}

    def estimate(self, project: Project, params: HarborParams) -> Estimate:
        return estimated(project, params)

    def section(self, run: Run) -> Mapping[str, object]:
        return harbor_section(run)

    def next_steps(self, run: Run) -> Sequence[tuple[str, str]]:
        slug = run.project.slug
        shown = f"{reverse('trajectory-list', args=[slug])}?run={run.pk}"
        return [("Show the trajectories", shown), ("Make pairs", f"{reverse('run-new', args=[slug])}?kind=pairs")]


class ReplayRun(Kind[ReplayParams]):
    name = "replay"
    title = "Replay: recorded commands in a fresh sandbox"
    pipeline = Pipeline.SCENARIOS
    summary = "Repeats recorded commands and says whether outputs and checker agree."
    filter = TrajectoryFilter
    params = ReplayParams
    section_template = "trajectories/replay/_run_section.html"

    def stages(self, params: ReplayParams) -> Sequence[Stage]:
        return [ReplayStage(params)]

    def check(self, project: Project, params: ReplayParams) -> None:
        with all_checks() as check:
            with check():
                if not matching_trajectories(project, params.filter).exists():
                    detail = (
                        "No trajectory matches, so there is nothing to replay. Change the filter, or launch a rollout."
                    )
                    raise Invalid.at("params.filter", detail, code="no_trajectories")
            with check():
                require_sandbox()

    def estimate(self, project: Project, params: ReplayParams) -> Estimate:
        return Estimate(items=matching_trajectories(project, params.filter).count(), notes=("No model is called.",))

    def finish(self, run: Run, params: ReplayParams) -> Json:
        return replay_figures(run)

    def next_steps(self, run: Run) -> Sequence[tuple[str, str]]:
        slug = run.project.slug
        differing = [("Show the replays that differ", f"{reverse('trajectory-list', args=[slug])}?replay=differs")]
        pairs = ("Launch pairs", f"{reverse('run-new', args=[slug])}?kind=pairs")
        return [*(differing if run.result.get("differ") else []), pairs]

    def conclude(self, run: Run) -> str:
        agree, replayed = run.result["agree"], run.result["agree"] + run.result["differ"]
        rest = run.items_total - replayed
        was = f"{counted(rest, 'trajectory')} {'was' if rest == 1 else 'were'} not replayed."
        said = f"{agree:,} of {counted(replayed, 'replay')} {'agrees' if agree == 1 else 'agree'} with the record."
        return " ".join([*([said] if replayed else []), *([was] if rest else [])])

    def section(self, run: Run) -> Mapping[str, object]:
        return replay_section(run)


class ProbeRun(Kind[ProbeParams]):
    name = "probe"
    title = "Probe: which step made the difference"
    pipeline = Pipeline.SCENARIOS
    summary = "Rebuilds the state after a step and lets rollouts go on: their success rate is the value of the step."
    filter = TrajectoryFilter
    params = ProbeParams
    section_template = "trajectories/probe/_run_section.html"

    def stages(self, params: ProbeParams) -> Sequence[Stage]:
        rounds = [RoundStage(params, number + 1) for number in range(params.rounds)]
        return [StatesStage(params), ChooseStage(params), *rounds]

    def check(self, project: Project, params: ProbeParams) -> None:
        with all_checks() as check:
            with check():
                targets_named(project, [params.model], "model")
            with check():
                if not rows_to_probe(project, params).exists():
                    detail = "No rollout matches, so there is no step to probe. Change the filter, or launch a rollout."
                    if others := count_not_probed(project, params):
                        detail += f" {_not_probed(others)}"
                    raise Invalid.at("params.filter", detail, code="no_trajectories")
            with check():
                require_sandbox()

    def estimate(self, project: Project, params: ProbeParams) -> Estimate:
        states = states_to_value(project, params)
        episodes = min(params.most_rollouts, states * params.samples * params.rounds)
        most = f"At most {counted(episodes, 'rollout')} from {counted(states, 'state')}"
        notes = [f"{most}; none where the rollouts at hand decide."]
        if others := count_not_probed(project, params):
            notes.append(_not_probed(others))
        return Estimate.total([estimate_episodes(project, params, episodes)], *notes)

    def finish(self, run: Run, params: ProbeParams) -> Json:
        return probe_figures(run)

    def next_steps(self, run: Run) -> Sequence[tuple[str, str]]:
        return [("Launch pairs", f"{reverse('run-new', args=[run.project.slug])}?kind=pairs")]

    def conclude(self, run: Run) -> str:
        better, all_of_them = run.result["better"], counted(run.result["comparisons"], "comparison")
        rollouts = counted(run.result["rollouts"], "rollout")
        return f"{better:,} of {all_of_them} {'shows' if better == 1 else 'show'} a better step, after {rollouts}."

    def section(self, run: Run) -> Mapping[str, object]:
        return probe_section(run)


def _not_probed(trajectories: int) -> str:
    many = counted(trajectories, "matching trajectory")
    return f"{many} of Harbor, of an import or of a server cannot be probed: no rollout can begin in the middle of one."


class ShortenRun(Kind[ShortenParams]):
    name = "shorten"
    title = "Shorten: sessions without their useless steps"
    pipeline = Pipeline.SCENARIOS
    summary = "Leaves out steps that a probe found useless, and keeps the session if it still solves the task."
    filter = TrajectoryFilter
    params = ShortenParams

    def stages(self, params: ShortenParams) -> Sequence[Stage]:
        return [ShortenStage(params)]

    def check(self, project: Project, params: ShortenParams) -> None:
        with all_checks() as check:
            with check():
                if not rows_to_shorten(project, params).exists():
                    detail = "No kept trajectory that matches has a step that a probe of all steps has found useless."
                    raise Invalid.at("params.filter", detail, code="no_trajectories")
            with check():
                require_sandbox()

    def estimate(self, project: Project, params: ShortenParams) -> Estimate:
        return Estimate(items=rows_to_shorten(project, params).count(), notes=("No model is called.",))

    def finish(self, run: Run, params: ShortenParams) -> Json:
        return shorten_figures(run)

    def results(self, run: Run) -> Sequence[RunFact]:
        url = f"{reverse('trajectory-list', args=[run.project.slug])}?run={run.pk}"
        return [
            RunFact("Shorter sessions", f"{run.result['solved']:,}", url),
            RunFact("Steps left out", f"{run.result['cut']:,}"),
            RunFact("Not solved without them", f"{run.result['not_solved']:,}"),
        ]

    def next_steps(self, run: Run) -> Sequence[tuple[str, str]]:
        return review_steps(run)

    def conclude(self, run: Run) -> str:
        kept, cut = run.result["solved"], counted(run.result["cut"], "useless step")
        return f"{counted(kept, 'session')} still {'solves' if kept == 1 else 'solve'} the task without {cut}."


class PairsRun(Kind[PairParams]):
    name = "pairs"
    title = "Pairs: kept trajectories over rejected ones"
    pipeline = Pipeline.SCENARIOS
    summary = "Preference pairs of a kept and a rejected trajectory of one scenario or task."
    filter = TrajectoryFilter
    params = PairParams
    section_template = "trajectories/pairs/_run_section.html"

    def stages(self, params: PairParams) -> Sequence[Stage]:
        return [PairStage(params)]

    def check(self, project: Project, params: PairParams) -> None:
        if not trajectories_to_pair(project, params).exists():
            wanted = "import some" if params.source == "trajectories" else "launch a rollout"
            detail = f"No trajectory matches, so there is nothing to pair. Change the filter, or {wanted}."
            raise Invalid.at("params.filter", detail, code="no_trajectories")

    def estimate(self, project: Project, params: PairParams) -> Estimate:
        batches = len(scenarios_to_pair(project, params)) + len(tasks_to_pair(project, params))
        return Estimate(items=batches, notes=("No model is called.",))

    def finish(self, run: Run, params: PairParams) -> Json:
        return pair_figures(run)

    def next_steps(self, run: Run) -> Sequence[tuple[str, str]]:
        slug = run.project.slug
        shown = ("Show the pairs", reverse("pair-list", args=[slug]))
        return [("New export", reverse("export-new", args=[slug])), shown]

    def conclude(self, run: Run) -> str:
        return f"{counted(run.result['pairs'], 'new pair')}; {run.result['there_already']:,} existed."

    def section(self, run: Run) -> Mapping[str, object]:
        return pairs_section(run)
