"""`GET /projects/{slug}/duels`, `GET /duels/{id}`, `GET /runs/{id}/report.md`."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from curation.duels.models import Duel, Verdict
from curation.projects.models import Project, Scope
from curation.samples.models import Flag
from tests.factories import make_bearer, make_duel, make_project, make_run

pytestmark = pytest.mark.django_db
KEYS = {
    *("id", "prompt", "instance_id", "opponent", "score", "metrics", "bucket", "flags"),
    *("king", "challenger", "verdicts", "sample"),
}
FACTS = {"has_thought", "blocks", "commands", "action_style", "tokens"}
VERDICT = {"judge", "order", "dimensions", "reason", "parsed", "raw", "tokens", "cost", "latency_ms"}


@pytest.fixture
def bearer(project: Project) -> dict[str, str]:
    return make_bearer(project.members.get().user, Scope.READ)


def get(client: Client, bearer: dict[str, str], path: str, status: int = 200) -> Any:
    response = client.get(f"/api/v1{path}", headers=bearer)
    assert response.status_code == status, response.content
    return response.json()


def ids(client: Client, bearer: dict[str, str], query: str) -> list[int]:
    return [int(row["id"]) for row in get(client, bearer, f"/projects/acme/duels?{query}")["data"]]


def test_a_duel_has_the_same_shape_alone_and_in_the_list(
    client: Client, project: Project, bearer: dict[str, str]
) -> None:
    duel = make_duel(project, flags=Flag.LEAK | Flag.FLIP, instance_id="acme__billing-9")
    answer = duel.challenger
    answer.leak_score, answer.leak_flag = 0.25, True
    answer.leak_spans = [{"start": 0, "end": 7, "token": "THOUGHT", "kind": "text", "place": "patch", "offset": 3}]
    answer.save()
    alone = get(client, bearer, f"/duels/{duel.pk}")
    listed = get(client, bearer, "/projects/acme/duels")
    assert listed == {"data": [alone], "next_cursor": None}
    assert set(alone) >= KEYS
    assert (alone["id"], alone["prompt"], alone["sample"]) == (str(duel.pk), str(duel.prompt_id), str(duel.sample_id))
    assert (alone["opponent"], alone["score"], alone["bucket"]) == ("king", 70.0, "refined")
    assert (alone["instance_id"], alone["flags"]) == ("acme__billing-9", ["leak", "flip"])
    assert set(alone["metrics"]) == {"correctness", "grounding", "progress", "protocol", "efficiency"}
    assert set(alone["king"]) >= {"text", "facts"} and set(alone["king"]["facts"]) == FACTS
    assert set(alone["challenger"]) >= {"text", "facts", "leak"}
    assert alone["challenger"]["leak"] == {"score": 0.25, "spans": answer.leak_spans}
    assert len(alone["verdicts"]) == 6 and all(set(verdict) == VERDICT for verdict in alone["verdicts"])
    assert {(v["judge"], v["order"]) for v in alone["verdicts"]} == {
        (judge, order) for judge in ("judge-a", "judge-b", "judge-c") for order in ("king_first", "challenger_first")
    }


def test_money_is_a_decimal_string_or_null(client: Client, project: Project, bearer: dict[str, str]) -> None:
    duel = make_duel(project)
    Verdict.objects.filter(duel=duel, judge="judge-a").update(cost="0.00015300")
    costs = {v["judge"]: v["cost"] for v in get(client, bearer, f"/duels/{duel.pk}")["verdicts"]}
    assert costs == {"judge-a": "0.000153", "judge-b": None, "judge-c": None}


def test_against_the_reference_the_king_is_the_sources_own_turn(
    client: Client, project: Project, bearer: dict[str, str]
) -> None:
    duel = make_duel(project)
    Duel.objects.filter(pk=duel.pk).update(king=None, opponent="reference")
    shown = get(client, bearer, f"/duels/{duel.pk}")
    assert (shown["opponent"], shown["king"]["model"]) == ("reference", None)
    assert shown["king"]["text"] == duel.prompt.text.reference["content"]
    facts = shown["king"]["facts"]
    assert (facts["has_thought"], facts["blocks"], facts["commands"], facts["action_style"]) == (True, 1, 1, "read")


def test_filters_narrow_the_list(client: Client, project: Project, bearer: dict[str, str]) -> None:
    run = make_run(project)
    best = make_duel(project, score=90.0, bucket="final", run=run, instance_id="one").pk
    held = make_duel(project, score=85.0, bucket="refined", flags=Flag.LEAK, instance_id="two").pk
    lost = make_duel(project, score=20.0, bucket="defeat", flags=Flag.FLIP, instance_id="two").pk
    silent = make_duel(project, score=None, bucket="unparsed", flags=Flag.INFRA, instance_id="three").pk
    Duel.objects.filter(pk=lost).update(opponent="reference", king=None)
    Duel.objects.filter(pk=silent).update(metrics={})
    everything = [silent, lost, held, best]
    for query, expected in {
        "": everything,
        "bucket=final": [best],
        "bucket=final,unparsed": [silent, best],
        "flags=leak,flip": [lost, held],
        "flags=leak&flags=flip": [],
        "opponent=reference": [lost],
        "instance_id=two": [lost, held],
        f"run={run.pk}": [best],
        "score_min=80": [held, best],
        "score_max=85": [lost, held],
        "score_min=20&score_max=85&bucket=defeat": [lost],
        "sort=id": everything[::-1],
        "sort=-score": [best, held, lost, silent],
        "sort=score": [silent, lost, held, best],
        "created_after=2000-01-01T00:00:00Z": everything,
        "created_after=2999-01-01T00:00:00Z": [],
    }.items():
        assert ids(client, bearer, query) == expected, query


@pytest.mark.parametrize("sort", ["-id", "-score"])
def test_pages_follow_each_other(client: Client, project: Project, bearer: dict[str, str], sort: str) -> None:
    made = {make_duel(project, score=float(n // 2)).pk for n in range(5)}
    seen: list[int] = []
    query = f"limit=2&count=true&sort={sort}"
    page = get(client, bearer, f"/projects/acme/duels?{query}")
    assert page["total"] == 5
    while True:
        seen += [int(row["id"]) for row in page["data"]]
        if page["next_cursor"] is None:
            break
        page = get(client, bearer, f"/projects/acme/duels?{query}&cursor={page['next_cursor']}")
    assert len(seen) == 5 and set(seen) == made


@pytest.mark.parametrize(
    "query", ["colour=red", "bucket=best", "flags=odd", "opponent=queen", "sort=colour", "limit=501", "score_min=much"]
)
def test_unknown_parameters_are_refused(client: Client, project: Project, bearer: dict[str, str], query: str) -> None:
    problem = get(client, bearer, f"/projects/acme/duels?{query}", 400)
    assert query.split("=")[0] in str(problem["errors"]) + problem["detail"]


def test_no_duel_and_a_run_of_another_project_are_not_found(
    client: Client, project: Project, bearer: dict[str, str]
) -> None:
    run = make_run(make_project("other"))
    for path in ("/duels/nonsense", "/duels/999999", f"/projects/acme/duels?run={run.pk}"):
        get(client, bearer, path, 404)


def test_a_page_of_500_costs_few_queries(client: Client, project: Project, bearer: dict[str, str]) -> None:
    counts = []
    get(client, bearer, "/projects/acme/duels")  # the first use of a token is noted
    for _ in range(2):
        for _ in range(3):
            make_duel(project)
        with CaptureQueriesContext(connection) as queries:
            get(client, bearer, "/projects/acme/duels?limit=500")
        counts.append(len(queries))
        assert not any("history" in query["sql"] for query in queries)
    assert counts[0] == counts[1]


def test_a_run_of_another_kind_has_no_report(client: Client, project: Project, bearer: dict[str, str]) -> None:
    problem = get(client, bearer, f"/runs/{make_run(project, kind='king').pk}/report.md", 404)
    assert "duel" in problem["detail"]


def test_the_verdicts_of_a_project_are_read_in_pages(client: Client, project: Project, bearer: dict[str, str]) -> None:
    run = make_run(project)
    duel = make_duel(project, run=run)
    make_duel(make_project("other"))
    control = make_duel(project)
    Duel.objects.filter(pk=control.pk).update(control="same", expected=0)
    read: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = get(client, bearer, f"/projects/acme/verdicts?sort=id&limit=4&duel={duel.pk}{cursor}")
        read += page["data"]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    rows = Verdict.objects.filter(duel=duel)
    assert [row["id"] for row in read] == [str(pk) for pk in rows.order_by("id").values_list("pk", flat=True)]
    assert set(read[0]) >= VERDICT and read[0]["sample"] == str(duel.sample_id) and read[0]["control"] is None

    def listed(query: str) -> set[str]:
        return {row["id"] for row in get(client, bearer, f"/projects/acme/verdicts?{query}")["data"]}

    every = set(map(str, Verdict.objects.filter(duel__project=project, duel__control="").values_list("pk", flat=True)))
    assert listed("limit=500") == every
    one = rows.filter(judge="judge-a")
    assert listed(f"sample={duel.sample_id}&judge=judge-a") == {str(row.pk) for row in one}
    assert listed("parsed=false") == set() and listed("control=true") == set(
        map(str, control.verdicts.values_list("pk", flat=True))
    )
    rows.update(run=run)
    assert listed(f"run={run.pk}") == {str(row.pk) for row in rows}
    get(client, bearer, "/projects/acme/verdicts?run=x", 400)
    get(client, bearer, "/projects/other/verdicts", 404)
