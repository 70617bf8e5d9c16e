"""Scenarios by REST: a script's requests, the responses, and the refusals with their places."""

import io
import json
import zipfile

import jsonschema
import pytest
from django.test import Client
from pytest_django import Settings

from curation.scenarios.models import GateReport, Scenario
from tests.factories import BUNDLE, make_project, make_scenario, make_trajectory
from tests.scenarios.browsing import GIVEN, Caller

pytestmark = pytest.mark.django_db


@pytest.fixture
def call(client: Client) -> Caller:
    return Caller(client)


def report_of(scenario: Scenario, **values: object) -> GateReport:
    steps = [{"command": "todo", "output": "write\n", "exit_code": 0, "seconds": 0.1}]
    checks = [{"name": "untouched", "passed": True, "reason": "", "transcript": steps}]
    given = {"verdict": "admitted", "checks": checks, "backend": "bubblewrap", "bundle_sha256": scenario.bundle_sha256}
    return GateReport.objects.create(scenario=scenario, **{**given, **values})


class TestStore:
    def test_a_bundle_becomes_a_draft(self, call: Caller) -> None:
        answer = call("POST", "/projects/shell/scenarios", GIVEN)

        row = answer.json()
        assert answer.status_code == 201
        assert answer["Location"] == f"/api/v1/scenarios/{row['id']}"
        assert answer["ETag"] == '"1"'
        assert (row["status"], row["gate"], row["version"]) == ("draft", None, 1)
        assert {key: row[key] for key in GIVEN} == GIVEN

    def test_a_refusal_names_each_place(self, call: Caller) -> None:
        wrong = {**GIVEN, "colour": "red", "fixtures": [{"path": "/etc/passwd", "content": "x"}]}

        answer = call("POST", "/projects/shell/scenarios", wrong)

        problem = answer.json()
        assert (answer.status_code, problem["code"]) == (422, "bad_bundle")
        assert {error["path"] for error in problem["errors"]} == {"colour", "fixtures.0.path"}
        assert not Scenario.objects.exists()

    @pytest.mark.parametrize("body", ["{", '"text"', "[" * 5000, '{"name": "\\ud800"}'])
    def test_what_is_no_bundle_at_all_is_refused(self, call: Caller, body: str) -> None:
        answer = call("POST", "/projects/shell/scenarios", body)

        assert answer.status_code in (400, 422)
        assert answer["Content-Type"] == "application/problem+json"

    def test_a_name_is_used_once(self, call: Caller) -> None:
        call("POST", "/projects/shell/scenarios", GIVEN)

        answer = call("POST", "/projects/shell/scenarios", {**GIVEN, "title": "Another"})

        assert (answer.status_code, answer.json()["code"]) == (409, "name_taken")

    def test_the_projects_own_values_are_known(self, call: Caller) -> None:
        body = {**GIVEN, "axes": {"task": "deploy"}}
        assert call("POST", "/projects/shell/scenarios", body).status_code == 422

        call("PATCH", "/projects/shell", {"settings": {"taxonomy": {"axes": {"task": ["deploy"]}}}})

        assert call("POST", "/projects/shell/scenarios", body).status_code == 201
        axes = {axis["axis"]: axis for axis in call("GET", "/projects/shell/taxonomy").json()["data"]}
        assert axes["task"]["values"][-1]["value"] == "deploy"


class TestReplace:
    def test_an_edit_is_a_draft_again(self, call: Caller) -> None:
        row = make_scenario(call.project, "greeting")

        answer = call("PUT", f"/scenarios/{row.pk}", {**GIVEN, "title": "Other"}, **{"If-Match": '"1"'})

        assert answer.status_code == 200
        assert (answer["ETag"], answer.json()["status"], answer.json()["title"]) == ('"2"', "draft", "Other")

    def test_what_get_answered_may_be_sent_back(self, call: Caller) -> None:
        made = call("POST", "/projects/shell/scenarios", GIVEN).json()
        Scenario.objects.update(status="admitted")

        answer = call("PUT", f"/scenarios/{made['id']}", call("GET", f"/scenarios/{made['id']}").json())

        assert (answer.status_code, answer.json()["status"], answer.json()["version"]) == (200, "admitted", 1)

    def test_an_unknown_key_is_still_refused(self, call: Caller) -> None:
        row = make_scenario(call.project, "greeting")
        assert call("PUT", f"/scenarios/{row.pk}", {**GIVEN, "colour": 1}).status_code == 422


class TestRead:
    def test_the_list_is_slim_and_filtered(self, call: Caller) -> None:
        make_scenario(call.project, "one", bundle={"axes": {"task": "cleanup"}})
        make_scenario(call.project, "two", status="rejected", reason="it passes untouched")
        make_scenario(make_project(), "foreign")

        page = call("GET", "/projects/shell/scenarios?count=true&sort=name").json()
        some = call("GET", "/projects/shell/scenarios?axes=task=cleanup&status=admitted").json()

        assert [row["name"] for row in page["data"]] == ["one", "two"]
        assert page["total"] == 2
        assert "fixtures" not in page["data"][0]
        assert page["data"][1]["gate"] == {"verdict": "rejected", "reason": "it passes untouched"}
        assert [row["name"] for row in some["data"]] == ["one"]

    def test_full_rows_have_bundles_and_checks_in_few_queries(
        self, call: Caller, django_assert_max_num_queries: object
    ) -> None:
        for number in range(5):
            report_of(make_scenario(call.project, f"s{number}"))

        with django_assert_max_num_queries(8):  # type: ignore[operator]  # pytest-django gives it no type
            rows = call("GET", "/projects/shell/scenarios?full=true").json()["data"]

        assert len(rows) == 5
        assert rows[0]["checker"] == BUNDLE["checker"]
        assert rows[0]["gate"]["checks"][0]["transcript"][0]["command"] == "todo"

    def test_one_has_the_newest_report_on_the_bundle_as_it_is(self, call: Caller) -> None:
        row = make_scenario(call.project)
        report_of(row, verdict="rejected", reason="older")
        report_of(row, verdict="admitted")
        report_of(row, verdict="rejected", reason="of another bundle", bundle_sha256="0" * 64)

        assert call("GET", f"/scenarios/{row.pk}").json()["gate"]["verdict"] == "admitted"

    def test_pages_follow_their_cursor(self, call: Caller) -> None:
        for number in range(5):
            make_scenario(call.project, f"s{number}")
        names, cursor = [], ""
        while cursor is not None:
            more = f"&cursor={cursor}" if cursor else ""
            page = call("GET", f"/projects/shell/scenarios?limit=2{more}").json()
            names += [row["name"] for row in page["data"]]
            cursor = page["next_cursor"]
        assert names == ["s4", "s3", "s2", "s1", "s0"]

    @pytest.mark.parametrize("query", ["colour=red", "status=good", "sort=title", "limit=501", "axes=task"])
    def test_what_the_list_does_not_know_is_refused(self, call: Caller, query: str) -> None:
        assert call("GET", f"/projects/shell/scenarios?{query}").status_code == 400


class TestGate:
    @pytest.fixture(autouse=True)
    def alone(self, storage: object, settings: Settings) -> None:
        settings.SANDBOX = "none"

    def test_a_run_over_just_this_one(self, call: Caller) -> None:
        row = make_scenario(call.project, status="draft")
        make_scenario(call.project, "other", status="draft")

        answer = call("POST", f"/scenarios/{row.pk}/gate", {"dry_run": True, "repeats": 0})

        run = answer.json()
        assert (answer.status_code, answer["Location"]) == (202, f"/api/v1/runs/{run['id']}")
        assert (run["kind"], run["items"]["total"], run["params"]["repeats"]) == ("gate", 1, 0)

    @pytest.mark.parametrize("body", [None, {}])
    def test_without_a_sandbox_it_is_refused_with_what_to_do(self, call: Caller, body: object) -> None:
        answer = call("POST", f"/scenarios/{make_scenario(call.project).pk}/gate", body)
        assert (answer.status_code, answer.json()["code"]) == (409, "no_sandbox")

    def test_an_unknown_key_is_refused(self, call: Caller) -> None:
        assert call("POST", f"/scenarios/{make_scenario(call.project).pk}/gate", {"image": "x"}).status_code == 422


class TestFiles:
    def test_the_schema_is_public_and_describes_bundles(self, client: Client) -> None:
        schema = client.get("/api/v1/schemas/bundle.json").json()

        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.validate(GIVEN, schema)
        for wrong in ({**GIVEN, "colour": 1}, {k: v for k, v in GIVEN.items() if k != "checker"}):
            with pytest.raises(jsonschema.ValidationError):
                jsonschema.validate(wrong, schema)

    def test_bundles_come_as_a_folder_of_files(self, call: Caller) -> None:
        make_scenario(call.project, "a/../b")
        make_scenario(call.project, "plain", status="draft")

        answer = call("GET", "/projects/shell/scenarios/bundles.zip")
        some = call("GET", "/projects/shell/scenarios/bundles.zip?status=draft")

        archive = zipfile.ZipFile(io.BytesIO(b"".join(answer.streaming_content)))
        assert sorted(archive.namelist()) == ["scenarios/a%2F..%2Fb.json", "scenarios/plain.json"]
        assert json.loads(archive.read("scenarios/plain.json"))["checker"] == BUNDLE["checker"]
        assert zipfile.ZipFile(io.BytesIO(b"".join(some.streaming_content))).namelist() == ["scenarios/plain.json"]

    def test_one_bundle_is_a_file_that_can_be_sent_back(self, call: Caller) -> None:
        row = make_scenario(call.project, "greeting")

        answer = call("GET", f"/scenarios/{row.pk}/bundle.json")

        assert 'filename="greeting.json"' in answer["Content-Disposition"]
        assert answer.json() == row.text.bundle


class TestDelete:
    def test_takes_the_bundle_and_its_reports(self, call: Caller) -> None:
        row = make_scenario(call.project)
        report_of(row)
        assert call("DELETE", f"/scenarios/{row.pk}").status_code == 204
        assert not Scenario.objects.exists() and not GateReport.objects.exists()

    def test_what_was_rolled_out_stays(self, call: Caller) -> None:
        row = make_trajectory(call.project).scenario
        assert row is not None
        assert call("DELETE", f"/scenarios/{row.pk}").json()["code"] == "rolled_out"
        assert Scenario.objects.filter(pk=row.pk).exists()


def test_coverage_as_json(call: Caller) -> None:
    make_scenario(call.project, bundle={"axes": {"task": "cleanup", "provider": "mailbox"}})

    found = call("GET", "/projects/shell/scenarios/coverage?rows=task&columns=provider").json()

    filled = [cell for cell in found["cells"] if cell["admitted"]]
    assert filled == [{"row": "cleanup", "column": "mailbox", "admitted": 1, "kept": 0}]
    assert call("GET", "/projects/shell/scenarios/coverage?rows=colour").json()["errors"][0]["path"] == "rows"
    assert call("GET", "/projects/shell/scenarios/coverage?rows=task&columns=task").status_code == 400
