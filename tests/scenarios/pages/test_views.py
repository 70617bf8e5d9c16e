"""Pages of scenarios: their content, the values that a form keeps, and hostile text that does no harm."""

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from curation.projects.models import Project
from curation.scenarios.bundles.document import parse_bundle
from curation.scenarios.bundles.save import axis_rows, columns_of
from curation.scenarios.models import GateReport, Scenario, ScenarioAxis
from tests.factories import BUNDLE, make_project, make_scenario, make_trajectory

pytestmark = pytest.mark.django_db

EVIL = "<script>alert(1)</script>\x1b[31mred\u202e <b onclick=x>"


def html(client: Client, name: str, *args: Any, query: str = "", status: int = 200) -> str:
    answer = client.get(f"{reverse(name, args=['shell', *args])}{query}")
    assert answer.status_code == status, answer.content.decode()[:2000]
    return answer.content.decode()


def report_of(scenario: Scenario, **values: Any) -> GateReport:
    steps = [
        {"command": "todo --help", "output": "usage: todo\n", "exit_code": 0, "seconds": 0.1},
        {"command": "cat nothing", "output": "cat: nothing: No such file\n", "exit_code": 1, "seconds": 0.02},
        {"command": "(the checker)", "output": "no greeting\n", "exit_code": 1, "seconds": 0.01},
    ]
    given = {
        "verdict": "rejected",
        "reason": "reference: the checker fails after the reference solution",
        "checks": [{"name": "reference", "passed": False, "reason": "the checker fails", "transcript": steps}],
        "backend": "bubblewrap",
        "bundle_sha256": scenario.bundle_sha256,
    }
    return GateReport.objects.create(scenario=scenario, **{**given, **values})


class TestList:
    def test_shows_scenarios_and_a_tab_per_status(self, client: Client, project: Project) -> None:
        make_scenario(project, "greeting one")
        make_scenario(project, "greeting two", status="rejected", reason="passes untouched")
        make_scenario(make_project(), "foreign")

        page = html(client, "scenario-list")
        rejected = html(client, "scenario-list", query="?status=rejected")

        assert "greeting one" in page and "greeting two" in page and "foreign" not in page
        assert "greeting one" not in rejected and "passes untouched" in rejected
        assert all(tab in page for tab in ("Draft", "Admitted", "Rejected", "Dry run"))

    def test_filters_by_axis_and_shows_the_choice(self, client: Client, project: Project) -> None:
        make_scenario(project, "tidy", bundle={"axes": {"task": "cleanup"}})
        make_scenario(project, "other")

        page = html(client, "scenario-list", query="?axes=task%3Dcleanup&axes=&text=")

        assert "tidy" in page and 'value="task=cleanup" selected' in page
        assert ">other<" not in page
        assert "bundles.zip?axes=task=cleanup" in page

    def test_each_condition_is_a_chip_and_the_form_keeps_some(self, client: Client, project: Project) -> None:
        make_scenario(project, "one")
        page = html(client, "scenario-list", query="?name=one&axes=shell%3Ddash&axes=task%3Dcleanup")
        chips = re.findall(r'<span class="chip">(.*?)<a class="chip__remove" href="([^"]+)"', page)
        assert chips == [
            ("name <b>one</b>", "/p/shell/scenarios/?axes=shell=dash&amp;axes=task=cleanup"),
            ("axes <b>shell=dash</b>", "/p/shell/scenarios/?name=one&amp;axes=task=cleanup"),
            ("axes <b>task=cleanup</b>", "/p/shell/scenarios/?name=one&amp;axes=shell=dash"),
        ]
        assert re.findall(r'type="hidden" name="axes" value="([^"]+)"', page) == ["shell=dash"]

    def test_an_invalid_filter_is_explained_and_stays_in_the_form(self, client: Client, project: Project) -> None:
        page = html(client, "scenario-list", query="?status=good&text=keep+me", status=400)
        assert "not one of draft, admitted" in page and "keep me" in page


class TestPage:
    def test_shows_the_bundle_readably(self, client: Client, project: Project) -> None:
        row = make_scenario(project, "greeting", bundle={"env": {"TONE": "warm"}})
        make_trajectory(project, row)

        page = html(client, "scenario-page", row.pk)

        for said in ("Leave a greeting", "/usr/local/bin/todo", "Work is announced by: todo", "TONE", "todo --help"):
            assert said in page
        assert "/etc/motd" in page and f"trajectories/?scenario={row.pk}" in page
        assert f"/api/v1/scenarios/{row.pk}/bundle.json" in page

    def test_a_binary_file_is_shown_by_its_size(self, client: Client, project: Project) -> None:
        row = make_scenario(project, bundle={"fixtures": [{"path": "/srv/b", "mode": "644", "base64": "AAEC"}]})
        assert "Binary file, not shown." in html(client, "scenario-page", row.pk)

    def test_hostile_text_does_nothing(self, client: Client, project: Project) -> None:
        bundle = {
            "title": EVIL,
            "announcement": {"kind": "motd", "text": EVIL},
            "provider": {"name": EVIL, "doc": EVIL},
            "fixtures": [{"path": f"/srv/{EVIL}", "mode": "644", "content": EVIL}],
            "env": {"A": EVIL},
            "reference_solution": f"{EVIL}\nexit",
            "checker": EVIL,
            "authored_by": EVIL,
            "axes": {"task": EVIL[:50]},
        }
        row = make_scenario(project, EVIL, bundle=bundle, status="rejected", reason=EVIL)
        checks = [{"name": EVIL, "passed": False, "reason": EVIL, "transcript": [{"command": EVIL, "output": EVIL}]}]
        report_of(row, reason=EVIL, checks=checks)

        for name, args in (
            ("scenario-list", []),
            ("scenario-page", [row.pk]),
            ("scenario-report", [row.pk]),
            ("scenario-edit", [row.pk]),
            ("scenario-coverage", []),
        ):
            page = html(client, name, *args)
            assert "<script>alert" not in page and "<b onclick" not in page, name
            if name != "scenario-edit":  # a form must give back the stored text
                assert "\x1b" not in page, name

    def test_a_draft_says_that_it_is_not_gated(self, client: Client, project: Project) -> None:
        assert "Not gated" in html(client, "scenario-page", make_scenario(project, status="draft").pk)

    def test_a_dry_run_is_named_as_one(self, client: Client, project: Project) -> None:
        row = make_scenario(project, status="dry_run")
        report_of(row, verdict="dry_run", reason="", backend="", checks=[{"name": "structure", "passed": True}])
        assert "never rolled out" in html(client, "scenario-page", row.pk)


class TestReport:
    def test_reads_like_a_session_with_a_verdict_per_check(self, client: Client, project: Project) -> None:
        row = make_scenario(project, status="rejected")
        report_of(row)

        page = html(client, "scenario-report", row.pk)

        assert page.index("usage: todo") < page.index("No such file") < page.index("no greeting")
        text = re.sub(r"\s+", " ", re.sub("<[^>]+>", "", page))
        assert "1. reference failed" in text and "exit 1" in text and "0.02s" in text
        assert "(the checker)" not in text

    def test_an_older_report_is_there_and_says_that_it_is_old(self, client: Client, project: Project) -> None:
        row = make_scenario(project)
        old = report_of(row, bundle_sha256="0" * 64)
        report_of(row, verdict="admitted", reason="")
        assert f"?report={old.pk}" in html(client, "scenario-report", row.pk)
        assert "edited after this report" in html(client, "scenario-report", row.pk, query=f"?report={old.pk}")

    def test_without_a_report_there_is_no_page(self, client: Client, project: Project) -> None:
        html(client, "scenario-report", make_scenario(project).pk, status=404)


class TestCoverage:
    def test_counts_scenarios_and_trajectories_and_leads_to_them(self, client: Client, project: Project) -> None:
        axes = {"task": "cleanup", "provider": "mailbox"}
        for number in range(3):
            row = make_scenario(project, f"s{number}", bundle={"axes": axes})
        make_trajectory(project, row)
        make_trajectory(project, row, outcome="checker_failed")
        make_scenario(project, "draft", bundle={"axes": axes}, status="draft")
        make_scenario(project, "no provider", bundle={"axes": {"task": "cleanup"}})

        page = html(client, "scenario-coverage")

        found = re.search(r'heatmap__cell--4">(.*?)</td>', page, re.DOTALL)
        assert found is not None
        assert re.findall(r">(\d+)<span", found[1]) == ["3", "1"]
        links = re.findall(r'href="([^"]+)"', found[1])
        assert links[0].endswith("scenarios/?status=admitted&amp;axes=task%3Dcleanup&amp;axes=provider%3Dmailbox")
        assert "1 more lacks one of these axes" in page
        assert client.get(links[0].replace("&amp;", "&")).content.decode().count("data-row ") == 3

    def test_any_two_axes_and_no_others(self, client: Client, project: Project) -> None:
        assert "difficulty by doc_depth" in html(
            client, "scenario-coverage", query="?rows=difficulty&columns=doc_depth"
        )
        html(client, "scenario-coverage", query="?rows=colour", status=400)

    def test_two_thousand_scenarios_stay_quick(
        self, client: Client, project: Project, django_assert_max_num_queries: Any
    ) -> None:
        fill(project, 2_000)
        for name in ("scenario-list", "scenario-coverage"):
            with django_assert_max_num_queries(14):
                html(client, name)
        with django_assert_max_num_queries(14):
            html(client, "scenario-list", query="?axes=task=cleanup&axes=difficulty=2,difficulty=3&text=tidy")


def fill(project: Project, count: int) -> None:
    tasks, providers = ("cleanup", "archive", "blocked"), ("mailbox", "spool")
    rows, axes = [], []
    base = parse_bundle({**BUNDLE, "name": "tidy"})
    for number in range(count):
        given = {"task": tasks[number % 3], "provider": providers[number % 2], "difficulty": number % 5 + 1}
        bundle = base.model_copy(update={"name": f"tidy {number}", "axes": given})
        row = Scenario(project=project, status="admitted", **{**columns_of(bundle)})
        rows.append(row)
        axes += axis_rows(row, bundle)
    Scenario.objects.bulk_create(rows, batch_size=1000)
    ScenarioAxis.objects.bulk_create(axes, batch_size=1000)
    with connection.cursor() as cursor:  # as PostgreSQL does by itself within a minute
        cursor.execute("ANALYZE")
