from typing import Any

import pytest
from django.http import QueryDict

from curation.trajectories.filters import TrajectoryFilter
from curation.trajectories.models import StepAdvantage, Trajectory
from curation.web.problems import Invalid, NotFound, Problem
from tests.factories import make_imported, make_project, make_run, make_scenario, make_step_value, make_trajectory

pytestmark = pytest.mark.django_db


def chosen(rows: dict[str, Trajectory], **given: Any) -> set[str]:
    project = next(iter(rows.values())).project
    found = set(TrajectoryFilter.from_json(given).apply(project))
    return {name for name, row in rows.items() if row in found}


@pytest.fixture
def rows() -> dict[str, Trajectory]:
    project = make_project()
    easy = make_scenario(project, "easy", bundle={"axes": {"task": "cleanup", "difficulty": 1}})
    hard = make_scenario(project, "hard", bundle={"axes": {"task": "blocked", "difficulty": 5}})
    made = {
        "a": make_trajectory(project, easy, sample={"status": "approved"}, axes={"provider_asked": "yes"}),
        "b": make_trajectory(
            project, easy, outcome="no_terminal", terminal="", model="operator-b", axes={"provider_asked": "no"}
        ),
        "c": make_trajectory(project, hard, outcome="correct_panic", terminal="panic no key", replay="agrees"),
        "d": make_imported(project, outcome="failed", reward=0.5, repo="acme/api", source_id="1"),
        "e": make_imported(project, outcome="error", task="join", agent="codex", source="other.zip"),
    }
    probe = make_run(project, "probe")
    for row, at, verdict in ((made["a"], 1, "alike"), (made["b"], 2, "worse")):
        value, before = make_step_value(row, at, probe), make_step_value(row, at - 1, probe)
        StepAdvantage.objects.create(value=value, against=before, verdict=verdict, unchanged=True)
    make_trajectory(make_project())  # of another project
    return made


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({}, "abcde"),
        ({"name": "easy"}, "ab"),
        ({"outcome": ["solved", "correct_panic"]}, "ac"),
        ({"keep": True}, "ac"),
        ({"keep": "false"}, "bde"),
        ({"terminal": "none"}, "bde"),
        ({"terminal": "panic,exit"}, "ac"),
        ({"model": "operator-b"}, "b"),
        ({"replay": "none"}, "abde"),
        ({"replay": "agrees"}, "c"),
        ({"step": "useless"}, "a"),
        ({"step": "worse,useless"}, "ab"),
        ({"step": "better"}, ""),
        ({"status": "approved"}, "a"),
        ({"axes": {"task": ["cleanup", "blocked"], "difficulty": "5"}}, "c"),
        ({"axes": "task=cleanup"}, "ab"),
        ({"provider_asked": "yes"}, "a"),
        ({"provider_asked": ["no", "unknown"]}, "bcde"),
        ({"documentation_read": "unknown"}, "abcde"),
        ({"created_after": "2100-01-01"}, ""),
        ({"created_before": "2100-01-01"}, "abcde"),
        ({"outcome": "failed"}, "bd"),
        ({"outcome": "error"}, "e"),
        ({"outcome": "no_terminal"}, "b"),
        ({"agent": "terminus-2", "model": "openai/stub-good"}, "d"),
        ({"task": "join,sum"}, "de"),
        ({"source": "other.zip"}, "e"),
        ({"repo": "acme/api"}, "d"),
        ({"reward_min": 0.5}, "d"),
        ({"reward_max": 0.4}, ""),
        ({"steps_min": 5}, "ac"),
        ({"steps_max": 4}, "bde"),
    ],
)
def test_each_field_chooses(rows: dict[str, Trajectory], given: dict[str, Any], names: str) -> None:
    assert chosen(rows, **given) == set(names)


def test_by_id_scenario_and_run(rows: dict[str, Trajectory]) -> None:
    project = rows["a"].project
    run = make_run(project, "rollout")
    Trajectory.objects.filter(pk=rows["b"].pk).update(run=run)
    assert chosen(rows, id=[str(rows["a"].pk), str(rows["c"].pk)]) == {"a", "c"}
    assert chosen(rows, scenario=str(rows["c"].scenario_id)) == {"c"}
    assert chosen(rows, run=str(run.pk)) == {"b"}


def test_runs_and_scenarios_of_others_are_not_found(rows: dict[str, Trajectory]) -> None:
    other = make_project()
    for given in ({"run": str(make_run(other).pk)}, {"scenario": str(make_scenario(other).pk)}):
        with pytest.raises(NotFound, match="There is no"):
            chosen(rows, **given)


@pytest.mark.parametrize(
    ("given", "place"),
    [({"colour": "red"}, "colour"), ({"outcome": "great"}, "outcome"), ({"id": "x"}, "id"), ({"axes": "task"}, "axes")],
)
def test_what_it_does_not_know_is_refused(given: dict[str, str], place: str) -> None:
    with pytest.raises(Invalid) as refused:
        TrajectoryFilter.from_json(given, path="params.filter")
    assert refused.value.errors[0].path == f"params.filter.{place}"


def test_a_filter_is_a_url() -> None:
    query = "outcome=solved,no_terminal&keep=true&axes=task=cleanup"
    assert TrajectoryFilter.from_query(QueryDict(query)).to_query() == query
    with pytest.raises(Problem):
        TrajectoryFilter.from_query(QueryDict("keep=true&keep=false"))
