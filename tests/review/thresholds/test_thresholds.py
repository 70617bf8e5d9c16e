"""The page and the REST call of thresholds: approvals by score, the expected precision, and what edges move."""

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from curation.duels.models import Duel
from curation.duels.score.models import Score
from curation.projects.access import Access
from curation.projects.models import Project, Role
from curation.projects.settings.change import change_project
from curation.review.bulk.decide import decide_selected
from curation.review.decisions.decide import decide
from curation.review.decisions.undo import undo
from curation.samples.models import Sample, flag_bits
from curation.web.text.figures import number
from tests.factories import make_bearer, make_member, make_panel, make_project
from tests.review.rows import judged, reviewer_of

pytestmark = pytest.mark.django_db


def add(project: Project, score: float | None, *flags: str, **values: Any) -> Sample:
    bucket = "unparsed" if score is None else "final" if score >= 80 else "refined" if score >= 66 else "defeat"
    if bucket == "final" and set(flags) & {"leak", "leak_reader", "infra"}:
        bucket = "refined"
    return judged(project, score=score, bucket=bucket, flags=flag_bits(flags), **values)


def settle(access: Access, action: str, *samples: Sample, **values: Any) -> None:
    for sample in samples:
        decide(access=access, sample_id=sample.pk, action=action, **values)


@pytest.fixture
def access() -> Access:
    """Samples: 4 at 82 (3 approved, 1 rejected), 2 at 85 (1 approved), 1 at 90, held ones at 95, others below."""
    access = reviewer_of(make_project("acme"), Role.ADMIN)
    project = access.project
    at_82 = [add(project, 82.0, "flip") for _ in range(4)]
    at_85 = [add(project, 85.0) for _ in range(2)]
    add(project, 90.0)
    held = [add(project, 95.0, "leak"), add(project, 95.0, "leak_reader", "infra")]
    add(project, 70.0)
    add(project, 100.0)
    add(project, None)
    settle(access, "approve", *at_82[:3], at_85[0], held[0])
    settle(access, "reject", at_82[3])
    return access


@pytest.fixture
def headers(access: Access) -> dict[str, str]:
    return make_bearer(access.user)


def read(client: Client, headers: dict[str, str], query: str = "", status: int = 200) -> Any:
    response = client.get(f"/api/v1/projects/acme/thresholds{query}", headers=headers)
    assert response.status_code == status, response.content
    return response.json()


def bins(found: Any) -> dict[int, dict[str, Any]]:
    return {one["low"]: one for one in found["bins"]}


def test_bins_count_every_sample_once_and_rate_those_without_a_holding_flag(
    client: Client, headers: dict[str, str]
) -> None:
    found = read(client, headers)
    by_low = bins(found)
    assert (found["scored"], found["unparsed"], sum(one["samples"] for one in by_low.values())) == (11, 1, 11)
    shown = {
        low: (one["samples"], one["pending"], one["approved"], one["settled"], one["held"])
        for low, one in by_low.items()
    }
    assert shown[80] == (4, 0, 3, 1, 0)
    assert shown[85] == (2, 1, 1, 0, 0)
    assert shown[95] == (3, 2, 1, 0, 2)
    assert (by_low[80]["rate"], by_low[80]["interval"]) == (0.75, pytest.approx([0.3006, 0.9544], abs=1e-4))
    assert (by_low[95]["rated"], by_low[95]["rate"], by_low[95]["interval"]) == (0, None, None)
    assert (
        found["saved"]["held_by"] == {"infra": 1, "injection": 0, "leak": 1, "leak_reader": 1, "leak_unread": 0}
        and found["saved"]["held"] == 2
    )


def test_the_precision_names_its_decisions_and_leaves_open_what_nobody_decided(
    client: Client, headers: dict[str, str], access: Access
) -> None:
    found = read(client, headers)["saved"]["precision"]
    # 82: 4 decided of 4; 85: 1 of 2; nobody decided a sample at 90 or 100.
    assert (found["samples"], found["decided"], found["approved"], found["unknown"]) == (8, 5, 4, 2)
    assert found["share"] is None and "nobody has decided any of 2 of them" in found["words"]
    settle(access, "reject", *Sample.objects.filter(score__in=[90, 100]))
    found = read(client, headers)["saved"]["precision"]
    assert found["share"] == pytest.approx((4 * 0.75 + 2 * 1.0) / 8)
    assert found["interval"][0] < found["share"] < found["interval"][1]
    assert "The estimate rests on 7 decisions." in found["words"]
    assert (found["flips_decided"], found["flips_undecided"]) == (pytest.approx(4 / 7), 0.0)


def test_other_edges_show_what_moves_and_are_saved_by_the_form(client: Client, access: Access) -> None:
    client.force_login(access.user)
    path = "/p/acme/thresholds/?final=83&refined=66"
    html = client.get(path).content.decode()
    assert "Samples that would move" in html and "with at least 83 points" in html
    part = client.get(path, headers={"HX-Request": "true"})
    assert part["HX-Replace-Url"] == path and "<html" not in part.content.decode()
    patch = re.search(r'<textarea name="patch" hidden>(.*?)</textarea>', html)
    assert patch is not None
    form = {"patch": patch[1].replace("&quot;", '"'), "version": access.project.version, "save": "1"}
    assert client.post("/p/acme/settings/rules/change/", form).status_code == 302
    access.project.refresh_from_db()
    assert access.project.settings.thresholds.final == 83
    assert set(Sample.objects.filter(score=82).values_list("bucket", flat=True)) == {"refined"}


def test_moves_are_counted_from_bucket_to_bucket_with_their_decisions(client: Client, headers: dict[str, str]) -> None:
    found = read(client, headers, "?final=86&refined=60")
    assert [(m["before"], m["after"], m["samples"], m["decided"]) for m in found["moves"]] == [
        ("final", "refined", 6, 5)
    ]
    assert (found["saved"]["final"], found["tried"]["final"], found["tried"]["refined"]) == (80, 86, 60)
    assert found["tried"]["precision"]["samples"] == 2
    assert read(client, headers)["moves"] == []


@pytest.mark.parametrize("query", ["?final=60&refined=70", "?final=101", "?final=nan", "?final=x", "?edge=3"])
def test_edges_that_cannot_be_are_refused_with_the_reason(
    client: Client, access: Access, headers: dict[str, str], query: str
) -> None:
    assert read(client, headers, query, 422 if "refined" in query else 400)["detail"]
    client.force_login(access.user)
    page = client.get(f"/p/acme/thresholds/{query}")
    assert page.status_code == 422 and "These edges cannot be used" in page.content.decode()


def test_the_page_reads_samples_and_decisions_once(client: Client, access: Access) -> None:
    client.force_login(access.user)
    for path, headers in (("", {}), ("?final=85", {}), ("?final=85", {"HX-Request": "true"})):
        with CaptureQueriesContext(connection) as captured:
            assert client.get(f"/p/acme/thresholds/{path}", headers=headers).status_code == 200
        assert sum("< 5.0 THEN 0" in query["sql"] for query in captured) == 2


@pytest.mark.parametrize("score", [62.25, 62.35, 0.05, 99.95])
def test_a_score_reads_alike_on_every_page(client: Client, score: float) -> None:
    access = reviewer_of(make_project("acme"), Role.ADMIN)
    judged(access.project, score=score, bucket="refined")
    client.force_login(access.user)
    paths = ("samples/", "duels/", f"duels/{Duel.objects.get().pk}/")
    shown = [re.search(r">(\d+\.\d)<", client.get(f"/p/acme/{path}").content.decode()) for path in paths]
    assert [found and found[1] for found in shown] == [number(score, 1)] * 3


def test_every_bin_lists_exactly_its_samples(client: Client, access: Access, headers: dict[str, str]) -> None:
    imported = add(access.project, 82.0)
    Duel.objects.filter(sample=imported).update(counting=None)
    client.force_login(access.user)
    scores = client.get("/p/acme/thresholds/").context["scores"]
    assert scores["imported"] == 1
    for one in scores["bins"]:
        for url, wanted in (
            (one.url, one.samples),
            (f"{one.url}&status=pending", one.pending),
            (f"{one.url}&status=approved", one.approved),
            (one.held_url, one.held),
        ):
            api = url.replace("/p/acme/", "/api/v1/projects/acme/").replace("/?", "?")
            assert len(client.get(api, headers=headers).json()["data"]) == wanted, url
            assert client.get(url).status_code == 200


def test_bulk_imported_and_undone_decisions_do_not_count_unless_asked_for(
    client: Client, access: Access, headers: dict[str, str]
) -> None:
    at_70 = Sample.objects.get(score=70)
    decide_selected(access=access, action="approve", ids=[str(at_70.pk)])
    found = read(client, headers)
    assert (found["settled"], found["counted"]) == (7, 6)
    assert (bins(found)[70]["approved"], bins(found)[70]["rate"]) == (1, None)
    every = read(client, headers, "?decisions=all")
    assert (every["counted"], bins(every)[70]["rate"]) == (7, 1.0)
    settle(access, "approve", Sample.objects.get(score=90))
    assert bins(read(client, headers))[90]["rate"] == 1.0
    undo(access=access)
    assert bins(read(client, headers))[90]["rate"] is None


def test_approvals_of_another_text_are_named(client: Client, access: Access, headers: dict[str, str]) -> None:
    settle(access, "approve", Sample.objects.get(score=90), preference="opponent")
    assert read(client, headers)["saved"]["precision"]["kept_other"] == 1


def test_another_panel_that_counts_changes_the_scores_but_no_decision(
    client: Client, access: Access, headers: dict[str, str]
) -> None:
    other = make_panel(access.project, ["judge-a"])
    for duel in Duel.objects.all():
        Score.objects.create(duel=duel, panel=other, score=50.0, score_key=50.0, bucket="defeat")
    before = read(client, headers)
    change_project(access=access, settings={"panel": {"counting": other.digest}})
    found = read(client, headers)
    assert found["panel"] == other.digest != before["panel"]
    assert (bins(found)[50]["samples"], bins(found)[50]["rated"], found["scored"]) == (12, 6, 12)


def test_members_without_the_right_see_the_page_but_cannot_save_and_strangers_see_nothing(
    client: Client, access: Access
) -> None:
    client.force_login(make_member(access.project, role=Role.CURATOR))
    html = client.get("/p/acme/thresholds/?final=90").content.decode()
    assert "Only admins of the project can save other edges." in html and "Save these edges" not in html
    client.force_login(reviewer_of(make_project("other")).user)
    assert client.get("/p/acme/thresholds/").status_code == 404
    assert "No scores yet" in client.get("/p/other/thresholds/").content.decode()


def test_the_chart_has_approval_rates_only_where_people_decided(client: Client) -> None:
    access = reviewer_of(make_project("acme"), role=Role.CURATOR)
    client.force_login(access.user)
    sample = add(access.project, 90.0)
    assert "yaxis2" not in client.get("/p/acme/thresholds/").content.decode()
    decide(access=access, sample_id=sample.pk, action="approve")
    assert "yaxis2" in client.get("/p/acme/thresholds/").content.decode()
