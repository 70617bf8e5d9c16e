"""`GET /projects/{slug}/samples`."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from curation.projects.models import Project, Scope
from curation.samples.models import Flag
from tests.factories import make_bearer, make_duel, make_project, make_sample

pytestmark = pytest.mark.django_db
KEYS = [
    *("id", "kind", "status", "bucket", "score", "predicted", "flags", "source", "repo", "instance_id", "action_style"),
    *("preview", "version", "source_url", "duel", "trajectory", "opponent", "panel", "in_review_by", "disputed"),
]


@pytest.fixture
def bearer(project: Project) -> dict[str, str]:
    return make_bearer(project.members.get().user, Scope.READ)


def get(client: Client, bearer: dict[str, str], query: str = "", status: int = 200, slug: str = "acme") -> Any:
    response = client.get(f"/api/v1/projects/{slug}/samples?{query}", headers=bearer)
    assert response.status_code == status, response.content
    return response.json()


def ids(answer: Any) -> list[int]:
    return [int(row["id"]) for row in answer["data"]]


def test_the_shape_of_a_row(client: Client, project: Project, bearer: dict[str, str]) -> None:
    duel = make_duel(project, flags=Flag.FLIP | Flag.LEAK, instance_id="i-1", action_style="read")
    answer = get(client, bearer)
    assert list(answer) == ["data", "next_cursor"]
    [row] = answer["data"]
    assert list(row) == KEYS
    assert row["id"] == str(duel.sample_id)
    assert row["duel"] == str(duel.pk)
    assert row["flags"] == ["leak", "flip"]
    assert (row["status"], row["bucket"], row["score"], row["version"]) == ("pending", "refined", 70.0, 1)
    assert (row["trajectory"], row["source_url"]) == (None, None)


def test_a_public_source_is_linked_with_its_row(client: Client, project: Project, bearer: dict[str, str]) -> None:
    duel = make_duel(project, source="hf://datasets/acme/turns/data/a.parquet")
    [row] = get(client, bearer)["data"]
    offset = duel.prompt.row_offset
    assert row["source_url"] == f"https://huggingface.co/datasets/acme/turns/blob/main/data/a.parquet#row={offset}"


def test_what_has_no_bucket_and_no_score_says_null(client: Client, project: Project, bearer: dict[str, str]) -> None:
    make_sample(project, bucket="", score=None)
    [row] = get(client, bearer)["data"]
    assert (row["bucket"], row["score"], row["duel"]) == (None, None, None)


@pytest.mark.parametrize("sort", ["-id", "id", "-score", "score", "-created_at", "created_at", "priority"])
def test_pages_hold_every_row_once_in_order(
    client: Client, project: Project, bearer: dict[str, str], sort: str
) -> None:
    made = [make_sample(project, score=score, priority=score or 0) for score in (70, 10, None, 70, 95, 10, 40)]
    make_sample(make_project())
    value = {"score": "score_key", "priority": "priority"}.get(sort.strip("-"), "pk")
    in_order = sorted(made, key=lambda sample: (getattr(sample, value), sample.pk), reverse=sort.startswith("-"))
    expected = [sample.pk for sample in in_order]
    seen: list[int] = []
    cursor = ""
    for _ in range(4):
        page = get(client, bearer, f"limit=2&sort={sort}&cursor={cursor}")
        seen += ids(page)
        cursor = page["next_cursor"]
    assert cursor is None
    assert seen == expected


def test_filters_and_count(client: Client, project: Project, bearer: dict[str, str]) -> None:
    for number in range(5):
        make_sample(project, bucket="final" if number % 2 else "refined", body=f"word{number} shared")
    assert get(client, bearer, "bucket=refined&limit=1&count=true")["total"] == 3
    assert get(client, bearer, "text=shared&bucket=final&count=true&sort=-score")["total"] == 2
    assert len(get(client, bearer, "text=word3")["data"]) == 1
    assert "total" not in get(client, bearer, "bucket=final")


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("colour=red", "colour"),
        ("bucket=purple", "bucket"),
        ("sort=repo", "sort"),
        ("limit=501", "limit"),
        ("score_min=x", "score_min"),
    ],
)
def test_refusals_name_the_parameter(
    client: Client, project: Project, bearer: dict[str, str], query: str, path: str
) -> None:
    assert [error["path"] for error in get(client, bearer, query, 400)["errors"]] == [path]


def test_a_cursor_of_another_order_is_refused(client: Client, project: Project, bearer: dict[str, str]) -> None:
    make_sample(project), make_sample(project)
    cursor = get(client, bearer, "limit=1")["next_cursor"]
    assert get(client, bearer, f"sort=score&cursor={cursor}", 400)["code"] == "bad_cursor"
    assert get(client, bearer, "cursor=nonsense", 400)["code"] == "bad_cursor"


def test_a_token_needs_the_scope(client: Client, project: Project) -> None:
    get(client, make_bearer(project.members.get().user, Scope.RUN), status=403)


@pytest.mark.parametrize("query", ["", "bucket=refined", "flags=flip&score_min=10&sort=-score", "text=totals"])
def test_a_page_costs_the_same_queries_for_any_number_of_rows(
    client: Client, project: Project, bearer: dict[str, str], query: str
) -> None:
    counts = []
    get(client, bearer)  # the token's first use is written down
    for rows in (1, 10):
        for _ in range(rows):  # new ones, so that both times the log says that the caller looked
            make_duel(project, flags=Flag.FLIP, score=70.0, bucket="refined", decided_by=project.members.get().user)
        with CaptureQueriesContext(connection) as captured:
            get(client, bearer, query)
        # PostgreSQL is told how to read a word that many rows have.
        counts.append(len([asked for asked in captured if not asked["sql"].startswith("SET ")]))
    assert counts[0] == counts[1]


def test_views_are_saved_listed_and_deleted(client: Client, project: Project) -> None:
    bearer = make_bearer(project.members.get().user, Scope.READ, Scope.REVIEW)
    url = "/api/v1/projects/acme/views"
    made = client.post(url, {"name": "A", "query": "sort=-score&bucket=final"}, "application/json", headers=bearer)
    assert made.status_code == 201
    assert made.json()["query"] == "bucket=final&sort=-score"
    assert client.get(url, headers=bearer).json() == {"data": [made.json()], "next_cursor": None}
    again = client.post(url, {"name": "A", "query": ""}, "application/json", headers=bearer)
    assert (again.status_code, again.json()["code"]) == (409, "view_exists")
    wrong = client.post(url, {"name": "B", "query": "bucket=purple"}, "application/json", headers=bearer)
    assert (wrong.status_code, wrong.json()["errors"][0]["path"]) == (400, "bucket")
    assert client.delete(f"{url}/{made.json()['id']}", headers=bearer).status_code == 204
    assert client.delete(f"{url}/{made.json()['id']}", headers=bearer).status_code == 404
    reader = make_bearer(project.members.get().user, Scope.READ)
    assert client.post(url, {"name": "C", "query": ""}, "application/json", headers=reader).status_code == 403
