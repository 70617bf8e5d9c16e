"""Bundles come in as rows of an import and as files of a folder, and go out as files that come in again."""

import json
import zipfile
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from curation.imports.kinds import ImportParams
from curation.imports.pages.preview import preview
from curation.projects.models import AuditEntry, Project
from curation.scenarios.bundles.document import parse_bundle
from curation.scenarios.bundles.files import file_name, files_of, zip_archive
from curation.scenarios.bundles.save import upsert_bundles
from curation.scenarios.models import Scenario, ScenarioAxis
from tests.factories import BUNDLE, make_project, make_scenario
from tests.imports.bringing import as_lines, bad_rows, bring, upload

pytestmark = pytest.mark.django_db(transaction=True)


def bundle(name: str, **changes: Any) -> dict[str, Any]:
    return {**BUNDLE, "name": name, **changes}


@pytest.fixture
def project(storage: Path) -> Project:
    return make_project("shell")


class TestRows:
    def test_good_ones_become_drafts_and_bad_ones_say_where(self, project: Project) -> None:
        wrong = bundle("wrong", fixtures=[{"path": "/etc/passwd", "content": "x"}])
        run = bring(
            project, "scenarios", [bundle("one"), wrong, bundle("two", axes={"task": "cleanup"}), {"name": "x"}]
        )

        assert (run.state, run.result["scenarios"], run.result["bad_rows"]) == ("succeeded", 2, 2)
        assert bad_rows(run)["row 2"].startswith("fixtures.0.path: must be below")
        assert "checker: missing" in bad_rows(run)["row 4"]
        row = Scenario.objects.with_bundle().get(name="two")
        assert (row.status, row.run_id, row.text.bundle["axes"]) == ("draft", run.pk, {"task": "cleanup"})
        assert set(ScenarioAxis.objects.filter(scenario=row).values_list("axis", "value")) == {("task", "cleanup")}
        assert AuditEntry.objects.filter(action="scenario.take_in").count() == 1

    def test_the_same_again_changes_nothing_and_a_differing_one_is_a_draft_again(self, project: Project) -> None:
        rows = [bundle("one"), bundle("two")]
        bring(project, "scenarios", rows)
        Scenario.objects.update(status="admitted")

        run = bring(project, "scenarios", [rows[0], {**rows[1], "title": "Other"}])

        assert {key: run.result[key] for key in ("scenarios", "updated", "unchanged")} == {
            "scenarios": 0,
            "updated": 1,
            "unchanged": 1,
        }
        assert run.result["drafts_again"] == ["two"]
        assert dict(Scenario.objects.values_list("name", "status")) == {"one": "admitted", "two": "draft"}

    def test_of_two_with_one_name_the_later_stays(self, project: Project) -> None:
        run = bring(project, "scenarios", [bundle("one"), bundle("one", title="Later")])

        assert (run.result["scenarios"], run.result["updated"]) == (1, 1)
        assert Scenario.objects.get().title == "Later"

    def test_the_projects_own_values_are_known_also_to_the_preview(self, project: Project) -> None:
        Project.objects.update(settings_json={"taxonomy": {"axes": {"task": ["deploy"]}}})
        project.refresh_from_db()
        rows = as_lines([bundle("one", axes={"task": "deploy"}), bundle("two", axes={"task": "dance"})])

        seen = preview(project=project, params=ImportParams(kind="scenarios", upload=upload(project, rows)))
        run = bring(project, "scenarios", rows)

        assert (seen.unit, [error.row for error in seen.errors]) == ("scenarios", [2])
        assert (run.result["scenarios"], run.result["bad_rows"]) == (1, 1)

    def test_a_json_array_is_imported(self, project: Project) -> None:
        run = bring(project, "scenarios", json.dumps([bundle("one"), bundle("two")]).encode(), name="b.json")
        assert run.result["scenarios"] == 2

    def test_what_the_list_downloads_can_be_imported_as_it_is(self, project: Project) -> None:
        for name in ("one", "two"):
            make_scenario(project, name)
        with zip_archive(files_of(Scenario.objects.of(project))) as archive:
            packed = archive.read()
        Scenario.objects.all().delete()

        run = bring(project, "scenarios", packed, name="scenarios.zip")

        assert (run.result["scenarios"], run.result["bad_rows"]) == (2, 0)

    def test_a_downloaded_bundle_is_imported(self, project: Project) -> None:
        run = bring(project, "scenarios", json.dumps(bundle("one"), indent=2).encode(), name="one.json")
        assert run.result["scenarios"] == 1

    def test_hundreds_come_in_by_few_statements(self, project: Project, django_assert_max_num_queries: Any) -> None:
        bundles = [parse_bundle(bundle(f"s{number}")) for number in range(800)]
        with django_assert_max_num_queries(60):
            found = upsert_bundles(project=project, bundles=bundles, user=None)
        assert len(found["created"]) == Scenario.objects.count() == 800


def run_command(*words: str) -> tuple[str, str, str]:
    """Its output, its complaints, and the reason of its failure (empty without one)."""
    out, err, failed = StringIO(), StringIO(), ""
    try:
        call_command("bundles", *words, "--project", "shell", stdout=out, stderr=err)
    except CommandError as error:
        failed = str(error)
    return out.getvalue(), err.getvalue(), failed


class TestFiles:
    def test_exported_bundles_can_be_imported(self, project: Project, tmp_path: Path) -> None:
        names = ["plain", "a/../b", ".hidden", "Grüße: 100 %", "x" * 120, "名" * 120]
        for name in names:
            make_scenario(project, name)
        before = dict(Scenario.objects.values_list("name", "text__bundle"))

        out, _, failed = run_command("export", str(tmp_path / "out"))
        Scenario.objects.all().delete()
        back, _, _ = run_command("import", str(tmp_path / "out"))

        assert (failed, out.split()[0]) == ("", "6")
        assert all(path.parent == tmp_path / "out" for path in (tmp_path / "out").rglob("*.json"))
        assert back == "6 created, 0 updated, 0 unchanged, 0 refused\n"
        assert dict(Scenario.objects.values_list("name", "text__bundle")) == before
        assert run_command("import", str(tmp_path / "out"))[0] == "0 created, 0 updated, 6 unchanged, 0 refused\n"

    def test_files_of_different_names_differ(self) -> None:
        assert len({file_name(name) for name in ("a/b", "a%2Fb", "a:b", "名" * 119, "名" * 120)}) == 5

    def test_only_what_the_filter_names_goes_out(self, project: Project, tmp_path: Path) -> None:
        make_scenario(project, "one")
        make_scenario(project, "two", status="draft")

        run_command("export", str(tmp_path), "--filter", "status=draft")

        assert [path.name for path in tmp_path.glob("*.json")] == ["two.json"]
        assert "no such filter" in run_command("export", str(tmp_path), "--filter", "colour=red")[2]

    def test_an_invalid_file_is_reported_by_its_path_and_the_others_are_imported(
        self, project: Project, tmp_path: Path
    ) -> None:
        (tmp_path / "good.json").write_text(json.dumps(bundle("good")))
        (tmp_path / "bad.json").write_text(json.dumps(bundle("bad", checker="")))
        (tmp_path / "broken.json").write_text("{")

        out, err, failed = run_command("import", str(tmp_path))

        assert "1 created" in out and "2 of 3" in failed
        assert "bad.json: checker: " in err and "broken.json: not JSON" in err
        assert [row.name for row in Scenario.objects.all()] == ["good"]

    def test_strict_takes_nothing_where_one_is_wrong(self, project: Project, tmp_path: Path) -> None:
        (tmp_path / "b.jsonl").write_bytes(as_lines([bundle("good"), {"name": "bad"}]))
        assert "Nothing was imported" in run_command("import", str(tmp_path / "b.jsonl"), "--strict")[2]
        assert not Scenario.objects.exists()

    def test_an_archive_a_list_and_a_single_file(self, project: Project, tmp_path: Path) -> None:
        with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
            archive.writestr("scenarios/../../one.json", json.dumps(bundle("one")))
            archive.writestr("readme.txt", "no bundle")
        (tmp_path / "list.json").write_text(json.dumps([bundle("two"), bundle("three")]))
        (tmp_path / "four.json").write_text(json.dumps(bundle("four"), indent=2))

        for name in ("b.zip", "list.json", "four.json"):
            assert run_command("import", str(tmp_path / name))[2] == ""

        assert set(Scenario.objects.values_list("name", flat=True)) == {"one", "two", "three", "four"}

    def test_what_is_not_there_is_said(self, project: Project, tmp_path: Path) -> None:
        assert "no file or folder" in run_command("import", str(tmp_path / "none"))[2]
        assert "no bundle" in run_command("import", str(tmp_path))[2]
        with pytest.raises(CommandError, match="no project"):
            call_command("bundles", "export", str(tmp_path), "--project", "nobody")
