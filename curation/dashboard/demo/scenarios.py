"""The demo's scenarios: the shipped bundles and three drafts, gated, rolled out, paired, some of them approved, and two
rounds of self-training.

The steps that need a sandbox wait for a machine that has one: a later start continues there.
"""

from django.db import transaction

from curation.dashboard.demo.builder import Builder
from curation.exports.models import Round
from curation.exports.rounds.start import export_round, start_next, start_round
from curation.projects.models import Project
from curation.review.models import Action, Decision
from curation.runs.models import Run
from curation.runs.workers.sandbox import NoSandbox, backend
from curation.samples.models import SampleKind, SampleStatus
from curation.scenarios.models import Scenario, ScenarioStatus
from curation.trajectories.models import Outcome, Pair, Trajectory
from curation.web.text.figures import counted

# Not gated, so that the demo has a draft.
DRAFT = "museum-crate-13"
TEACHER = "scripted-teacher"
# In the rounds, the solver stands for a model that was trained on the mixed operator's solutions.
OPERATOR, PANICKER, SOLVER = "scripted-operator-mixed", "scripted-operator-panicker", "scripted-operator-solver"
OPERATORS = (TEACHER, OPERATOR, PANICKER, SOLVER)
MAX_TURNS = 18  # the longest written solution, and a little more
ROUND_SCENARIOS = {"axes": {"difficulty": ["2"]}}


def make_demo_scenarios(build: Builder) -> None:
    """Add the missing parts, each once. Without a sandbox the scenarios are imported and stay drafts."""
    build.add_scripted_models(OPERATORS)
    if not Scenario.objects.of(build.project).exists():
        build.import_rows("scenarios", "scenarios.jsonl")
    try:
        build.say(f"  Scenarios run in sandboxes of {backend().name}")
        _run_in_sandboxes(build)
    except NoSandbox as missing:
        build.say(f"  No gate and no rollouts of scenarios: {missing.detail}")
        return
    build.say(_summary(build.project))


def _run_in_sandboxes(build: Builder) -> None:
    names = list(Scenario.objects.of(build.project).exclude(name=DRAFT).values_list("name", flat=True))
    _run_once(build, "gate", repeats=1, filter={"name": names})
    _run_once(build, "author", model=TEACHER, n=3, repeats=1, seed=7)
    by_hand, easy = {"authored_by": "by hand"}, {"axes": {"difficulty": ["1"]}}
    _run_once(build, "rollout", model=OPERATOR, max_turns=MAX_TURNS, samples=3, filter=by_hand)
    _run_once(build, "rollout", model=PANICKER, max_turns=MAX_TURNS, samples=1, filter=easy)
    _run_once(build, "pairs")
    _run_once(build, "replay", filter={"outcome": Outcome.CORRECT_PANIC})
    _approve_some(build)
    _make_rounds(build)


def _run_once(build: Builder, kind: str, /, **params: object) -> None:
    runs = Run.objects.of(build.project).filter(kind=kind)
    if "model" in params:
        runs = runs.filter(params__model=params["model"])
    if not runs.exists():
        build.run(kind, **params)


def _summary(project: Project) -> str:
    rows, found = Scenario.objects.of(project), Trajectory.objects.of(project)
    admitted, rejected = rows.admitted().count(), rows.filter(status=ScenarioStatus.REJECTED).count()
    pairs = Pair.objects.filter(project=project).count()
    return (
        f"  {counted(admitted, 'scenario')} admitted, {rejected} rejected by the gate;"
        f" {found.kept().count()} of {counted(found.count(), 'trajectory')} kept, {counted(pairs, 'pair')}"
    )


def _approve_some(build: Builder) -> None:
    """Approve some kept trajectories, so that an export has both kinds of samples; the visitor decides the rest."""
    if Decision.objects.filter(sample__project=build.project, sample__kind=SampleKind.TRAJECTORY).exists():
        return
    waiting = Trajectory.objects.of(build.project).kept().filter(sample__status=SampleStatus.PENDING).order_by("id")
    with transaction.atomic():
        for outcome, count in ((Outcome.SOLVED, 6), (Outcome.CORRECT_PANIC, 2)):
            samples = waiting.filter(outcome=outcome).values_list("sample_id", flat=True)[:count]
            build.decide([pk for pk in samples if pk is not None], Action.APPROVE, seconds=11.0)


def _make_rounds(build: Builder) -> None:
    """Make two rounds: the first is approved and exported, the second waits for the visitor's review."""
    rounds = Round.objects.of(build.project)
    first = rounds.filter(number=1).first()
    if first is None:
        rollout = {"max_turns": MAX_TURNS, "samples": 2, "filter": {"authored_by": "by hand", **ROUND_SCENARIOS}}
        first = start_round(access=build.access, operator=OPERATOR, rollout=rollout)
        build.drive(first.rollout)
    if first.export is None:
        kept = Trajectory.objects.filter(run=first.rollout, keep=True, sample__status=SampleStatus.PENDING).order_by(
            "id"
        )
        with transaction.atomic():
            build.decide(list(kept.values_list("sample_id", flat=True)), Action.APPROVE, seconds=8.0)
            run = export_round(access=build.access, round_=first)
        build.drive(run)
        first = rounds.get(pk=first.pk)
    if not rounds.filter(chain=first.chain, number=2).exists():
        build.drive(start_next(access=build.access, before=first, operator=SOLVER).rollout)
