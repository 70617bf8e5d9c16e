"""A filter of scenarios is a URL, and means the same as JSON."""

import pytest
from django.http import QueryDict

from curation.projects.models import Project
from curation.scenarios.filters import ScenarioFilter
from curation.scenarios.models import Scenario
from curation.web.problems import Invalid, Problem
from tests.factories import make_project, make_run, make_scenario


@pytest.fixture
def project(db: None) -> Project:
    project = make_project()
    make_scenario(project, "one", bundle={"axes": {"task": "cleanup", "difficulty": 1}, "title": "Tidy the spool"})
    make_scenario(project, "two", bundle={"axes": {"task": "cleanup", "difficulty": 2}}, status="rejected")
    make_scenario(project, "three", bundle={"axes": {"task": "archive"}}, authored_by="teacher", status="draft")
    make_scenario(make_project(), "foreign")
    return project


def names(project: Project, query: str) -> str:
    rows = ScenarioFilter.from_query(QueryDict(query)).apply(Scenario.objects.of(project))
    return " ".join(rows.order_by("id").values_list("name", flat=True))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", "one two three"),
        ("status=admitted,draft", "one three"),
        ("name=two,three", "two three"),
        ("axes=task=cleanup", "one two"),
        ("axes=task=cleanup&axes=difficulty=2", "two"),
        ("axes=task=archive,difficulty=2", "two three"),
        ("authored_by=teacher", "three"),
        ("text=spool", "one"),
        ("text=TW", "two"),
        ("status=draft&axes=task=cleanup", ""),
    ],
)
def test_which_rows_match(project: Project, query: str, found: str) -> None:
    assert names(project, query) == found


def test_by_id_and_by_the_run_that_brought_them(project: Project) -> None:
    run = make_run(project, "author")
    Scenario.objects.filter(name="two").update(run=run)

    assert names(project, f"id={Scenario.objects.get(name='three').pk}") == "three"
    assert names(project, f"run={run.pk}") == "two"


def test_json_says_the_same() -> None:
    given = {"status": "admitted", "axes": {"task": "cleanup", "difficulty": ["1", "2"]}}
    query = "status=admitted&axes=task=cleanup&axes=difficulty=1,difficulty=2"
    assert ScenarioFilter.from_json(given) == ScenarioFilter.from_query(QueryDict(query))
    assert ScenarioFilter.from_json(given).to_query() == query


@pytest.mark.parametrize(
    ("given", "path", "said"),
    [
        ({"colour": "red"}, "filter.colour", "no such filter; the filters are id, name, status"),
        ({"status": "good"}, "filter.status", "draft, admitted, held, rejected, dry_run"),
        ({"id": "seven"}, "filter.id", "id of a scenario"),
        ({"axes": "task"}, "filter.axes", "axis=value"),
        ({"text": "a\0"}, "filter.text", "NUL"),
    ],
)
def test_what_the_filter_does_not_know_is_refused(given: object, path: str, said: str) -> None:
    with pytest.raises(Invalid) as refused:
        ScenarioFilter.from_json(given)
    assert [error.path for error in refused.value.errors] == [path]
    assert said in refused.value.errors[0].message


def test_a_url_is_refused_as_a_bad_request() -> None:
    with pytest.raises(Problem) as refused:
        ScenarioFilter.from_query(QueryDict("colour=red"))
    assert refused.value.status == 400
