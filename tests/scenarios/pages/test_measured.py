"""Measured difficulty: which rollouts count, and where it is shown, sorted and filtered by."""

import pytest
from django.test import Client
from django.urls import reverse

from curation.projects.models import Project
from curation.scenarios.models import Scenario
from tests.factories import make_run, make_scenario, make_trajectory

pytestmark = pytest.mark.django_db
URL = "/api/v1/projects/shell/scenarios"


def tried(scenario: Scenario, *outcomes: str, model: str = "small", sha256: str = "") -> None:
    run = make_run(scenario.project, "rollout")
    for number, outcome in enumerate(outcomes):
        make_trajectory(
            scenario.project,
            scenario,
            outcome=outcome,
            run=run,
            sample_index=number,
            model=model,
            bundle_sha256=sha256 or scenario.bundle_sha256,
        )


@pytest.fixture
def rows(project: Project) -> dict[str, Scenario]:
    found = {name: make_scenario(project, name) for name in ("easy", "hard", "mixed", "new", "edited")}
    tried(found["easy"], "solved", "solved", "infra_error")
    tried(found["hard"], "checker_failed", "no_terminal", "timeout")
    tried(found["mixed"], "solved", "checker_failed", "checker_failed")
    tried(found["mixed"], "correct_panic", model="large")
    tried(found["new"], "infra_error")
    tried(found["edited"], "solved", sha256="f" * 64)
    return found


def names(client: Client, query: str) -> list[str]:
    answer = client.get(f"{URL}?{query}")
    assert answer.status_code == 200, answer.content
    return [row["name"] for row in answer.json()["data"]]


def test_what_the_machine_ended_and_other_bundles_do_not_count(client: Client, rows: dict[str, Scenario]) -> None:
    shown = {row["name"]: row["measured"] for row in client.get(URL).json()["data"]}
    assert {name: (m["tried"], m["kept"], m["solved_by"]) for name, m in shown.items()} == {
        "easy": (2, 2, "everybody"),
        "hard": (2, 0, "nobody"),
        "mixed": (4, 2, "some"),
        "new": (0, 0, "untried"),
        "edited": (0, 0, "untried"),
    }
    assert (shown["mixed"]["rate"], shown["mixed"]["low"], shown["mixed"]["high"]) == (0.5, 0.15, 0.85)
    assert (shown["new"]["rate"], shown["new"]["low"], shown["new"]["high"]) == (None, 0.0, 1.0)
    assert {found["lost"] for found in shown.values()} == {0}


def test_a_scenario_says_it_by_operator(client: Client, rows: dict[str, Scenario]) -> None:
    operators = client.get(f"/api/v1/scenarios/{rows['mixed'].pk}").json()["operators"]
    assert [(row["model"], row["tried"], row["kept"]) for row in operators] == [("large", 1, 1), ("small", 3, 1)]
    assert client.get(f"/api/v1/scenarios/{rows['new'].pk}").json()["operators"] == []


def test_the_list_is_filtered_and_sorted_by_it(client: Client, rows: dict[str, Scenario]) -> None:
    assert names(client, "solved_by=everybody") == ["easy"]
    assert set(names(client, "solved_by=nobody,untried")) == {"hard", "new", "edited"}
    assert names(client, "sort=-kept_rate")[:3] == ["easy", "mixed", "hard"]
    assert names(client, "sort=kept_rate")[2:] == ["hard", "mixed", "easy"]
    first = client.get(f"{URL}?sort=-kept_rate&limit=2").json()
    assert names(client, f"sort=-kept_rate&limit=2&cursor={first['next_cursor']}")[0] == "hard"
    assert client.get(f"{URL}?solved_by=me").status_code == 400


def test_the_pages_show_it_with_its_interval(client: Client, rows: dict[str, Scenario]) -> None:
    listed = client.get(reverse("scenario-list", args=["shell"])).content.decode()
    assert "50 % (15–85 %), n 4" in listed and "everybody solved it" in listed and "nobody solved it" in listed
    page = client.get(reverse("scenario-page", args=["shell", rows["mixed"].pk])).content.decode()
    assert "50 % (15–85 %), n 4" in page and "large:" in page
    only = client.get(f"{reverse('scenario-list', args=['shell'])}?solved_by=nobody").content.decode()
    assert ">hard<" in only and ">easy<" not in only
