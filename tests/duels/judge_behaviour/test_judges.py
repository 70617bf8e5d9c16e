"""The page and the REST call of judges."""

import json
import re
from collections import Counter
from functools import cache
from html import unescape
from typing import Any

import pytest
from django.test import Client

from curation.llm.client.completion import CompletionRequest
from curation.llm.models import Endpoint
from curation.projects.models import Project, Role, Scope
from curation.review.decisions.decide import decide
from curation.review.models import Action
from curation.runs.models import Call, Run
from curation.samples.models import Sample
from tests.duels.running import (
    JUDGES,
    Models,
    Says,
    against,
    fair,
    first,
    make_arena,
    run_to_end,
    serve,
    shown,
    verdict,
)
from tests.factories import make_bearer, make_member, make_project, make_user
from tests.review.importing import access_to
from tests.world import world

pytestmark = pytest.mark.django_db(transaction=True)


@world
def run(patched: pytest.MonkeyPatch) -> Run:
    """24 duels: judge-a prefers the challenger, judge-b its opponent, judge-c the answer shown first."""
    serve(patched).says |= {"judge-a": fair(), "judge-b": against, "judge-c": first}
    project, _ = make_arena(prompts=24)
    return run_to_end(project)


def read(client: Client, project: Project, query: str = "", status: int = 200) -> Any:
    headers = make_bearer(make_member(project, make_user(), Role.CURATOR), Scope.READ)
    response = client.get(f"/api/v1/projects/{project.slug}/judges{query}", headers=headers)
    assert response.status_code == status, response.content
    return response.json()


def test_figures_are_those_that_the_judges_replies_give(client: Client, run: Run) -> None:
    found = read(client, run.project)
    a, b, c = found["judges"]
    assert (found["run"], found["verdicts"]) == (str(run.pk), None)
    assert [judge["figures"]["win_rate"] for judge in (a, b, c)] == [1.0, 0.0, 0.5]
    assert [judge["figures"]["first_share"] for judge in (a, b, c)] == [0.5, 0.5, 1.0]
    assert set(c["figures"]["flips"].values()) == {1.0}
    assert any("prefers the first answer: 100 %" in finding["sentence"] for finding in c["figures"]["findings"])
    assert not any("prefers the first answer: 100 %" in finding["sentence"] for finding in a["figures"]["findings"])
    assert a["figures"]["agreement"] == {"judge-b": 0.0, "judge-c": 0.0}
    assert a["people"] == {"n": 0, "kappa": None, "kappa_interval": None, "accuracy": None}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("judge=judge-a", 24),
        ("judge=judge-a&said=challenger", 24),
        ("judge=judge-b&said=challenger", 0),
        ("judge=judge-b&said=opponent", 24),
        ("judge=judge-c&said=neither", 24),
        ("judge=judge-c&said=flip&dimension=progress", 24),
        ("judge=judge-a&said=flip", 0),
        ("judge=judge-c&said=second", 0),
        ("judge=judge-c&said=draw", 0),
        ("judge=judge-a&said=unparsed", 0),
        ("judge=judge-a&said=people", 0),
        ("judge=nobody", 0),
    ],
)
def test_a_figure_opens_the_duels_that_it_counts(client: Client, run: Run, query: str, found: int) -> None:
    headers = make_bearer(make_member(run.project, role=Role.CURATOR), Scope.READ)
    path = f"/api/v1/projects/{run.project.slug}/duels?run={run.pk}&count=true&{query}"
    assert client.get(path, headers=headers).json()["total"] == found


def number_in(request: CompletionRequest) -> int:
    found = re.findall(r"Fix rounding error (\d+)", str(request.messages))
    return int(found[-1])


def moody(request: CompletionRequest) -> str:
    """Replies prose to some, once or for good, and changes its mind, its seat and its dimensions by the prompt."""
    number, swapped = number_in(request), "CHALLENGER" in shown(request)[0]
    if number % 7 == 0 or (number % 7 == 1 and swapped):
        return "Both have their merits."
    return verdict(*((number * place + swapped * (number % 3)) % 3 for place in range(1, 6)))


def test_every_figure_opens_as_many_duels_as_it_says(client: Client, models: Models) -> None:
    asked: Counter[str] = Counter()

    def second_time(request: CompletionRequest) -> Says:
        asked[text := str(request.messages)] += 1
        return "Let me think." if number_in(request) % 4 == 0 and asked[text] == 1 else fair(won=3)(request)

    def challenger(request: CompletionRequest) -> str:
        command = "grep -rn quantise" if number_in(request) % 3 == 0 else "ls"
        return f"THOUGHT: I go on.\n\n```bash\n{command} CHALLENGER\n```"

    models.says |= {"judge-a": second_time, "judge-b": moody, "judge-c": first, "challenger": challenger}
    project, _ = make_arena(prompts=21, settings={"panel": {"judges": list(JUDGES), "controls": 0.05, "min_judges": 1}})
    run = run_to_end(project)
    user = make_member(project, role=Role.CURATOR)
    access = access_to(project, user)
    for place, sample in enumerate(Sample.objects.order_by("pk")[:6]):
        preference = "candidate" if place % 2 else "opponent"
        decide(access=access, sample_id=sample.pk, action=Action.APPROVE, preference=preference)
    client.force_login(user)
    page = client.get(f"/p/{project.slug}/judges/").content.decode()
    cells = re.findall(r'<a href="([^"]+)">([^<]+)</a> <span class="muted">(\d+) (?:duel|call)s?</span>', page)
    assert len(cells) == 3 * 26
    headers, counts = make_bearer(user, Scope.READ), set()

    @cache
    def total(path: str) -> int:
        return int(client.get(f"{path}&count=true&limit=1", headers=headers).json()["total"])

    for url, text, count in cells:
        path = unescape(url).replace(f"/p/{project.slug}/duels/", f"/api/v1/projects/{project.slug}/duels")
        path = path.replace(f"/p/{project.slug}/runs/{run.pk}/calls/", f"/api/v1/runs/{run.pk}/calls")
        assert total(path) == int(count), (url, text, count)
        counts.add((url.split("judge=judge-")[-1], int(count)))
    # The judges differ, and few figures are of no duel: nothing agrees by being 0.
    assert sum(count > 0 for _, count in counts) > 40


@pytest.mark.parametrize(
    "query", ["judge=a", "run=1&judge=a&part=x", "run=1&part=leak", "run=1&said=flip", "run=1&judge=a&said=x"]
)
def test_a_filter_by_what_a_judge_said_names_its_run_and_judge(client: Client, query: str) -> None:
    project = make_project("acme")
    headers = make_bearer(make_member(project, make_user(), Role.CURATOR), Scope.READ)
    response = client.get(f"/api/v1/projects/acme/duels?{query}", headers=headers)
    assert response.status_code == 400 and response.json()["detail"]


def test_control_duels_of_a_run_are_listed_by_judge(client: Client, models: Models) -> None:
    models.says |= {"judge-a": fair(), "judge-b": against, "judge-c": first}
    project, _ = make_arena(prompts=6, settings={"panel": {"judges": list(JUDGES), "controls": 0.05}})
    run = run_to_end(project)
    figures = read(client, project)["judges"][2]["figures"]
    headers = make_bearer(make_member(project, make_user(), Role.CURATOR), Scope.READ)

    def total(query: str) -> int:
        path = f"/api/v1/projects/{project.slug}/duels?run={run.pk}&control=true&count=true{query}"
        return int(client.get(path, headers=headers).json()["total"])

    # Bribes are controls of a kind of their own.
    assert total("") == total("&judge=judge-c") == figures["controls"] + figures["bribes"] > figures["controls"] > 0
    assert total("&judge=judge-c&said=first") == figures["controls"] + figures["bribes"]
    assert total("&judge=judge-c&said=challenger") == 0


def test_the_verdict_without_a_judge_is_that_of_the_others(client: Client, run: Run) -> None:
    calls = Call.objects.count()
    [without_b] = read(client, run.project, "?without=judge-b")["verdicts"]
    assert without_b["before"]["margin"] == pytest.approx(0.0)
    # judge-a says 1 and judge-c 0.5 in every duel: 2 × 75 − 100.
    assert without_b["after"]["margin"] == pytest.approx(50.0)
    [only_b] = read(client, run.project, "?without=judge-a,judge-c")["verdicts"]
    assert (only_b["after"]["margin"], only_b["after"]["accepted"]) == (pytest.approx(-100.0), False)
    run.refresh_from_db()
    assert (Call.objects.count(), run.result["margin"]) == (calls, pytest.approx(0.0))


def test_weights_change_the_verdict_of_judges_that_win_some_dimensions(client: Client, models: Models) -> None:
    models.says |= {"judge-a": fair(won=1)}
    project, _ = make_arena(prompts=3, judges=("judge-a",))
    run_to_end(project)
    [equal] = read(client, project, "?weight=correctness=1")["verdicts"]
    [only] = read(client, project, "?weight=grounding=0,progress=0,protocol=0,efficiency=0")["verdicts"]
    # The challenger wins correctness and draws the rest: 0.6 on average.
    assert equal["after"]["margin"] == pytest.approx(20.0)
    assert only["after"]["margin"] == pytest.approx(100.0)


def test_people_are_compared_with_each_judge(client: Client, run: Run) -> None:
    user = make_member(run.project, role=Role.CURATOR)
    access = access_to(run.project, user)
    for number, sample in enumerate(Sample.objects.order_by("pk")[:4]):
        preference = "candidate" if number < 3 else "opponent"
        decide(access=access, sample_id=sample.pk, action=Action.APPROVE, preference=preference)
    a, b, c = (judge["people"] for judge in read(client, run.project)["judges"])
    assert (a["n"], a["accuracy"], b["accuracy"], c["accuracy"]) == (4, 0.75, 0.25, 0.0)
    assert (a["kappa"], b["kappa"]) == (0.0, 0.0)
    run.project.refresh_from_db()
    client.force_login(user)
    html = client.get(f"/p/{run.project.slug}/judges/").content.decode()
    assert 'said=people">0.00' in html and '<span class="muted">4 duels</span>' in html
    headers = make_bearer(user, Scope.READ)
    for query, found in (("said=people", 4), ("said=against_people", 1)):
        path = f"/api/v1/projects/{run.project.slug}/duels?run={run.pk}&judge=judge-a&{query}"
        assert len(client.get(path, headers=headers).json()["data"]) == found


def test_cost_per_verdict_is_unknown_where_a_price_is(client: Client, run: Run) -> None:
    for judge in read(client, run.project)["judges"]:
        cost = judge["figures"]["cost"]
        assert (judge["cost_per_verdict"] is None) == (cost is None)
        assert cost is None or float(judge["cost_per_verdict"]) == pytest.approx(float(cost) / 48)


@pytest.mark.parametrize(
    "query", ["?without=nobody", "?without=judge-a,judge-b,judge-c", "?run=999999", "?weight=charm=1"]
)
def test_what_cannot_be_computed_is_refused(client: Client, run: Run, query: str) -> None:
    read(client, run.project, query, 404 if "run" in query else 422)


def test_the_charts_show_bias_and_agreement_with_intervals_and_numbers(client: Client, run: Run) -> None:
    client.force_login(make_member(run.project, make_user(), Role.CURATOR))
    html = client.get(f"/p/{run.project.slug}/judges/?run={run.pk}").content.decode()
    bias, agreement = [json.loads(found) for found in re.findall(r'"application/json">(\{"data".*?)</script>', html)]
    (first_answer,) = [trace for trace in bias["data"] if trace["name"] == "prefers the first answer"]
    assert first_answer["y"] == ["judge-a", "judge-b", "judge-c"] and first_answer["x"] == [0.5, 0.5, 1.0]
    assert first_answer["text"][2].startswith("n = ") and first_answer["error_x"]["arrayminus"][2] > 0
    (cells,) = agreement["data"]
    assert cells["z"][0] == [None, 0.0, 0.0] and cells["text"][0] == ["", "0%", "0%"]


def test_the_page_names_judges_on_whom_no_verdict_rests(client: Client, run: Run) -> None:
    client.force_login(make_member(run.project, make_user(), Role.CURATOR))
    page = unescape(client.get(f"/p/{run.project.slug}/judges/").content.decode())
    for judge in run.result["judges"]:
        assert judge["control_objection"] and f"is not counted as informative: {judge['control_objection']}" in page


def test_the_page_names_the_flaw_and_the_deleted_judge(client: Client, run: Run) -> None:
    Endpoint.objects.filter(name="judge-c").delete()
    client.force_login(make_member(run.project, make_user("ada"), Role.CURATOR))
    html = client.get(f"/p/{run.project.slug}/judges/?without=judge-c&weight=protocol=0.5").content.decode()
    assert "prefers the first answer: 100\N{NO-BREAK SPACE}%" in html and html.count("deleted model") == 1
    assert (
        f"/duels/?run={run.pk}&amp;judge=judge-c&amp;said=flip&amp;dimension=correctness" in html
        and 'id="tried"' in html
        and 'value="protocol=0.5"' in html
    )


def test_an_empty_project_says_what_to_do(client: Client) -> None:
    project = make_project("acme")
    client.force_login(make_member(project, make_user("ada"), Role.CURATOR))
    assert "A duel run has a panel of judges" in client.get("/p/acme/judges/").content.decode()
