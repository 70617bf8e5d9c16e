"""The demo's scenarios: the shipped bundles and three drafts, gated, rolled out, paired, some of them approved.

The steps that need a sandbox wait for a machine that has one: a later start continues there.
"""

from pathlib import Path

import orjson
from django.db import transaction

from curation import scenarios
from curation.dashboard.demo.builder import FILES, Builder
from curation.projects.models import Project
from curation.review.models import Action, Decision
from curation.runs.models import Run
from curation.runs.workers.sandbox import NoSandbox, backend
from curation.samples.models import Kind, Status
from curation.scenarios.models import Scenario
from curation.scenarios.models import Status as ScenarioStatus
from curation.trajectories.models import Outcome, Pair, Trajectory

SHIPPED = Path(scenarios.__file__).parent / "shipped"
# Not gated, so that the demo has a draft.
DRAFT = "museum-crate-13"
TEACHER = "scripted-teacher"
OPERATOR, PANICKER = "scripted-operator-mixed", "scripted-operator-panicker"
OPERATORS = (TEACHER, OPERATOR, PANICKER, "scripted-operator-solver")
MAX_TURNS = 18  # the longest written solution, and a little more


def make_demo_scenarios(build: Builder) -> None:
    """Make what is missing, each step once. Without a sandbox the scenarios are imported and stay drafts."""
    build.add_scripted_models(OPERATORS)
    if not Scenario.objects.of(build.project).exists():
        paths = sorted([*SHIPPED.glob("*.json"), *(FILES / "scenarios").glob("*.json")])
        rows = b"\n".join(orjson.dumps(orjson.loads(path.read_bytes())) for path in paths)
        build.import_rows("scenarios", "scenarios.jsonl", rows)
    try:
        build.say(f"  Scenarios run in sandboxes of {backend().name}")
        _run_in_sandboxes(build)
    except NoSandbox as missing:
        build.say(f"  No gate and no rollouts of scenarios: {missing.detail}")
        return
    _approve_some(build)
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
        f"  {admitted} scenarios admitted, {rejected} rejected by the gate;"
        f" {found.kept().count()} of {found.count()} trajectories kept, {pairs} pairs"
    )


def _approve_some(build: Builder) -> None:
    """Approve some kept trajectories, so that an export has both kinds of samples; the visitor decides the rest."""
    if Decision.objects.filter(sample__project=build.project, sample__kind=Kind.TRAJECTORY).exists():
        return
    waiting = Trajectory.objects.of(build.project).kept().filter(sample__status=Status.PENDING).order_by("id")
    with transaction.atomic():
        for outcome, count in ((Outcome.SOLVED, 6), (Outcome.CORRECT_PANIC, 2)):
            samples = waiting.filter(outcome=outcome).values_list("sample_id", flat=True)[:count]
            build.decide([pk for pk in samples if pk is not None], Action.APPROVE, seconds=11.0)
