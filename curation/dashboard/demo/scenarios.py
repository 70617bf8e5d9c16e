"""Scenarios in the demo: the shipped bundles and three to work on, gated, rolled out, paired, some of them approved.

What needs a sandbox waits for a machine that has one: a later start goes on where an earlier one could not.
"""

from collections.abc import Callable, Iterable
from io import BytesIO
from pathlib import Path

import orjson
from django.contrib.auth.models import User
from django.core.files import File
from django.db import transaction

from curation import scenarios
from curation.imports.sources.stored import store_upload
from curation.llm.models import Endpoint
from curation.projects.access import Access
from curation.projects.models import SCOPES_OF_ROLE, Project, Role
from curation.review.decisions.decide import decide
from curation.review.models import Action, Decision
from curation.runs.launch import launch
from curation.runs.models import Run
from curation.runs.workers.sandbox import NoSandbox, backend
from curation.samples.models import Kind, Status
from curation.scenarios.models import Scenario
from curation.scenarios.models import Status as Proven
from curation.trajectories.models import Outcome, Pair, Trajectory

SHIPPED = Path(scenarios.__file__).parent / "shipped"
FLAWED = Path(__file__).parent / "files" / "scenarios"
# Left ungated, so that there is a draft to begin with.
DRAFT = "museum-crate-13"
TEACHER = "scripted-teacher"
OPERATOR, PANICKER = "scripted-operator-mixed", "scripted-operator-panicker"
OPERATORS = (TEACHER, OPERATOR, PANICKER, "scripted-operator-solver")
MOST_TURNS = 18  # what the longest of the written solutions takes, and a little more
Say = Callable[[str], None]
Drive = Callable[[Run], None]


def make_demo_scenarios(*, project: Project, user: User, drive: Drive, say: Say) -> None:
    """Makes what is missing, each step once. Without a sandbox the scenarios are brought in and stay drafts."""
    for name in OPERATORS:
        model = name.replace("scripted-", "scripted/", 1)
        Endpoint.objects.get_or_create(
            project=project, name=name, defaults={"model": model, "family": "scripted", "max_concurrency": 32}
        )
    made = _Made(project, user, drive)
    if not Scenario.objects.of(project).exists():
        made.scenarios([*SHIPPED.glob("*.json"), *FLAWED.glob("*.json")])
    try:
        say(f"  scenarios in sandboxes of {backend().name}")
        _in_sandboxes(made, project)
    except NoSandbox as missing:
        say(f"  scenarios are not gated or rolled out: {missing.detail}")
        return
    _approve_some(project, user)
    say(_what_there_is(project))


def _in_sandboxes(made: "_Made", project: Project) -> None:
    names = list(Scenario.objects.of(project).exclude(name=DRAFT).values_list("name", flat=True))
    made.once("gate", {"repeats": 1, "filter": {"name": names}})
    made.once("author", {"model": TEACHER, "n": 3, "repeats": 1, "seed": 7})
    made.rollouts(OPERATOR, {"samples": 3, "filter": {"authored_by": "by hand"}})
    made.rollouts(PANICKER, {"samples": 1, "filter": {"axes": {"difficulty": ["1"]}}})
    made.once("pairs", {})
    made.once("replay", {"filter": {"outcome": Outcome.CORRECT_PANIC}})


def _what_there_is(project: Project) -> str:
    rows, found = Scenario.objects.of(project), Trajectory.objects.of(project)
    admitted, refused = rows.rollable().count(), rows.filter(status=Proven.REJECTED).count()
    pairs = Pair.objects.filter(project=project).count()
    return (
        f"  {admitted} scenarios admitted, {refused} refused by the gate;"
        f" {found.kept().count()} of {found.count()} trajectories kept, {pairs} pairs"
    )


class _Made:
    """The project's runs, each launched where it is not there yet."""

    def __init__(self, project: Project, user: User, drive: Drive) -> None:
        self._project, self._user, self._drive = project, user, drive

    def scenarios(self, paths: Iterable[Path]) -> None:
        """One import of all bundles, as rows of a file."""
        rows = b"\n".join(orjson.dumps(orjson.loads(path.read_bytes())) for path in sorted(paths))
        name = "scenarios.jsonl"
        key = store_upload(project=self._project, file=File(BytesIO(rows), name=name), name=name)
        self._launch("import", {"kind": "scenarios", "upload": key, "name": name})

    def once(self, kind: str, params: dict[str, object]) -> None:
        if not Run.objects.of(self._project).filter(kind=kind).exists():
            self._launch(kind, params)

    def rollouts(self, model: str, params: dict[str, object]) -> None:
        if not Run.objects.of(self._project).filter(kind="rollout", params__model=model).exists():
            self._launch("rollout", {"model": model, "max_turns": MOST_TURNS, **params})

    def _launch(self, kind: str, params: dict[str, object]) -> None:
        self._drive(launch(project=self._project, kind=kind, params=params, user=self._user))


def _approve_some(project: Project, user: User) -> None:
    """Some kept trajectories are approved, so that an export has both kinds of samples; the rest is for the visitor."""
    if Decision.objects.filter(sample__project=project, sample__kind=Kind.TRAJECTORY).exists():
        return
    access = Access(user, project, Role.ADMIN, SCOPES_OF_ROLE[Role.ADMIN])
    waiting = Trajectory.objects.of(project).kept().filter(sample__status=Status.PENDING).order_by("id")
    with transaction.atomic():
        for outcome, count in ((Outcome.SOLVED, 6), (Outcome.CORRECT_PANIC, 2)):
            for number, row in enumerate(waiting.filter(outcome=outcome)[:count]):
                if row.sample_id is not None:
                    decide(
                        access=access, sample_id=row.sample_id, action=Action.APPROVE, reason="", seconds=11.0 + number
                    )
