"""A model attacks checkers in real sandboxes; a teacher mends what gets in, and a solver works honestly afterwards."""

import json
import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from curation.llm.client.completion import CompletionRequest
from curation.projects.models import Project
from curation.runs.kinds import kind_of
from curation.runs.models import Item
from curation.scenarios.gate.kind import gate_section
from curation.scenarios.models import GateReport, Scenario
from curation.trajectories.models import Trajectory
from curation.web.problems import Invalid
from tests.factories import BUNDLE, make_endpoint, make_scenario, make_user
from tests.parts import ROOT
from tests.trajectories.rolling import Operators, completion, make_stage, run_to_end, start

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.bubblewrap, pytest.mark.usefixtures("bubblewrap")]
LAX = "grep -q hello greeting.txt"
CHEAT = ("cat /etc/motd", "echo hello > greeting.txt", "exit")
HONEST = ("todo --help", "todo", "echo 'hello world' > greeting.txt", "exit")
# The work, done in another way.
OTHERWISE = ("todo", "printf 'hello  world\\n\\n' > greeting.txt", "exit")


@pytest.fixture
def project() -> Project:
    project = make_stage()
    make_endpoint(project, "teacher", model="fake/teacher")
    make_endpoint(project, "solver", model="fake/solver")
    return project


def mended(**changed: Any) -> str:
    own = {key: value for key, value in BUNDLE.items() if key not in ("axes", "authored_by", "seed")}
    return json.dumps({**own, "name": "greeting", **changed})


def attacks(project: Project, **params: Any) -> Any:
    return run_to_end(project, "attack", **{"model": "operator-a", "attempts": 2, "sight": "without", **params})


def test_what_gets_in_is_shown_and_refuses_the_scenario(project: Project, operators: Operators, client: Client) -> None:
    row = make_scenario(project, bundle={"checker": LAX})
    operators.scripts["operator-a"] = CHEAT
    run = attacks(project)

    row.refresh_from_db()
    assert (run.state, row.status) == ("succeeded", "rejected")
    assert row.reason == (
        "attack 1 without sight of the checker: the checker passes, but /home/agent/greeting.txt is not as the"
        " reference leaves it"
    )
    (check,) = GateReport.objects.get(run=run).checks
    shown = [(line["command"], line["exit_code"]) for line in check["transcript"]]
    assert shown == [(CHEAT[0], 0), (CHEAT[1], 0), ("exit", None), ("(the checker)", 0)]
    assert run.result == {"attacked": 1, "not_tried": 0, "got_in": 1, "mended": 0}
    assert not Trajectory.objects.exists()  # an attack is no training data

    client.force_login(make_user(is_superuser=True))
    page = client.get(reverse("run-page", args=[project.slug, run.pk])).content.decode()
    assert "attack 1 without sight of the checker" in page
    report = re.sub("<[^>]+>", "", client.get(reverse("scenario-report", args=[project.slug, row.pk])).content.decode())
    assert "echo hello &gt; greeting.txt" in report and "without sight of the checker" in report


@pytest.mark.parametrize("way", [HONEST, OTHERWISE])
def test_the_work_itself_is_no_attack(project: Project, operators: Operators, way: tuple[str, ...]) -> None:
    row = make_scenario(project, bundle={"checker": LAX})
    GateReport.objects.create(
        scenario=row,
        bundle_sha256=row.bundle_sha256,
        verdict="admitted",
        checks=[{"name": "untouched", "passed": True}],
    )
    operators.scripts["operator-a"] = way
    run = attacks(project)

    row.refresh_from_db()
    assert (row.status, run.result["got_in"]) == ("admitted", 0)
    names = [check["name"] for check in GateReport.objects.get(run=run).checks]
    assert names == ["untouched", "2 attacks without sight of the checker"]


def test_where_nothing_is_to_do_the_provider_must_be_asked(project: Project, operators: Operators) -> None:
    idle = {"reference_solution": "todo\nexit", "axes": {**BUNDLE["axes"], "task": "empty-queue"}}
    unseen = make_scenario(project, bundle={**idle, "checker": '[ "$TERMINAL" = exit ]'})
    seen = make_scenario(project, bundle={**idle, "checker": "asked todo"})
    operators.scripts["operator-a"] = lambda request: "todo" if asks(request) == 0 else "exit"
    assert attacks(project).result["got_in"] == 0

    operators.scripts["operator-a"] = ("exit",)
    attacks(project, attempts=3)
    assert [Scenario.objects.get(pk=row.pk).status for row in (unseen, seen)] == ["rejected", "admitted"]


@pytest.mark.parametrize("replies", [("exit",), lambda _: completion("``` \nnever closed")])
def test_replies_without_a_command_prove_nothing(project: Project, operators: Operators, replies: Any) -> None:
    row = make_scenario(project, bundle={"checker": LAX})
    operators.scripts["operator-a"] = replies
    run = attacks(project)
    assert run.result == {"attacked": 0, "not_tried": 1, "got_in": 0, "mended": 0}
    assert "Not tried: 1 scenario" in kind_of(run.kind).conclude(run)
    (check,) = GateReport.objects.get(scenario=row).checks
    assert (check["name"], check["passed"]) == ("0 attacks without sight of the checker", True)
    assert check["reason"] == "warning: no reply of the model was an attack, so nothing was tried"


def asks(request: CompletionRequest) -> int:
    return sum(message["role"] == "assistant" for message in request.messages)


def test_the_checker_is_shown_with_sight_alone(project: Project, operators: Operators) -> None:
    make_scenario(project, bundle={"checker": LAX})
    operators.scripts["operator-a"] = ("exit",)
    attacks(project, sight="both", attempts=1)

    shown = [LAX in str(request.messages[0]["content"]) for request in operators.asked]
    assert shown == [False, True]


def test_a_repair_is_attacked_again_and_admits_honest_work(project: Project, operators: Operators) -> None:
    row = make_scenario(project, "greeting", bundle={"checker": LAX})
    operators.scripts |= {"operator-a": CHEAT, "teacher": lambda _: completion(mended()), "solver": HONEST}
    run = attacks(project, teacher="teacher", solver="solver", samples=1, repeats=0)

    row.refresh_from_db()
    assert (run.state, row.status, row.version, row.reason) == ("succeeded", "admitted", 2, "")
    shown: dict[str, Any] = gate_section(run)
    assert [(one["status"], one["count"]) for one in shown["verdicts"]] == [("admitted", 1)]
    (refused,) = shown["refusals"]
    assert refused["url"].endswith(f"report/?report={GateReport.objects.get(run=run, verdict='rejected').pk}")
    assert run.result == {"attacked": 1, "not_tried": 0, "got_in": 1, "mended": 1}
    checks = GateReport.objects.newest_of([row])[row.pk].checks
    assert [check["name"] for check in checks][-2:] == [
        "honest work after the repair",
        "2 attacks without sight of the checker",
    ]
    assert checks[0]["name"] == "untouched"
    said = next(str(request.messages) for request in operators.asked if "hello world" in str(request.messages[2:3]))
    assert "echo hello > greeting.txt" in said
    assert row.run is None  # it outlives the run
    assert not Item.objects.filter(run=run, stage="repair-2").exists()


def test_a_repair_that_refuses_honest_work_is_held(project: Project, operators: Operators) -> None:
    row = make_scenario(project, "greeting", bundle={"checker": LAX})
    operators.scripts |= {"operator-a": CHEAT, "teacher": lambda _: completion(mended()), "solver": ("exit",)}
    run = attacks(project, teacher="teacher", solver="solver", samples=2, repeats=0, repairs=1)

    row.refresh_from_db()
    assert (row.status, run.result["mended"]) == ("held", 0)
    assert row.reason == "honest work after the repair: solver does the work and is not rewarded, or cannot do it"


def test_a_launch_says_all_that_is_missing(project: Project) -> None:
    with pytest.raises(Invalid) as refused:
        start(project, "attack", model="operator-a", teacher="teacher")
    assert [error.path for error in refused.value.errors] == ["params.filter", "params.solver"]

    make_scenario(project)
    kind = kind_of("attack")
    estimate = kind.estimate(project, kind.params(model="operator-a", attempts=3, max_turns=10))
    assert (estimate.items, estimate.calls) == (6, 60)


@pytest.mark.slow
def test_honest_work_through_the_shipped_scenarios_is_no_attack(project: Project) -> None:
    make_endpoint(project, "scripted", model="scripted/operator-solver")
    for path in (ROOT / "curation/scenarios/shipped").glob("*.json"):
        make_scenario(project, path.stem, bundle=json.loads(path.read_text()))
    run = attacks(project, model="scripted", attempts=1)

    found = {row.name: row.reason for row in Scenario.objects.exclude(status="admitted")}
    assert (run.error, found, run.result) == ("", {}, {"attacked": 20, "not_tried": 0, "got_in": 0, "mended": 0})
