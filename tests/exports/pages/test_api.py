"""The REST calls of exports, as a script's author uses them."""

from typing import Any

import pytest
from django.test import Client

from curation.exports.models import Export
from curation.projects.models import AuditEntry, Project, Role
from curation.runs.models import Run
from curation.samples.models import Flag, SampleStatus
from tests.exports.exporting import approve, drive_export, export_of, make_approved
from tests.factories import make_bearer, make_duel, make_member, make_project, make_run, make_user

pytestmark = pytest.mark.django_db(transaction=True)
RECIPE = {"formats": ["sft-messages", "dpo"], "filter": {"status": "approved"}}
JSON = "application/json"


class Script:
    """A caller with a token of its own."""

    def __init__(self, role: str = Role.CURATOR, *scopes: str) -> None:
        self.project: Project = make_project()
        self.user = make_member(self.project, role=role)
        self.headers = make_bearer(self.user, *scopes)
        self.here = f"/projects/{self.project.slug}"

    def __call__(self, method: str, path: str, body: object = None, **headers: str) -> Any:
        sent = self.headers | headers
        data = {} if body is None else {"data": body, "content_type": JSON}
        return getattr(Client(), method)(f"/api/v1{path}", headers=sent, **data)


def test_a_post_answers_202_with_the_run_that_names_its_export() -> None:
    script = Script()
    make_approved(script.project)
    answer = script("post", f"{script.here}/exports", {"recipe": RECIPE})
    assert answer.status_code == 202
    run = answer.json()
    assert answer.headers["Location"] == f"/api/v1/runs/{run['id']}"
    assert (run["kind"], run["state"], run["items"]["total"]) == ("export", "queued", 1)
    waiting = script("get", f"/exports/{run['result']['export']}").json()
    assert (waiting["state"], waiting["files"], waiting["manifest_sha256"]) == ("queued", [], None)
    drive_export(Run.objects.get(pk=run["id"]))
    done = script("get", f"/exports/{waiting['id']}").json()
    assert done["state"] == "succeeded" and done["manifest_sha256"]
    assert done["counts"]["rows"] == {"sft-messages": {"train": 1}, "dpo": {"train": 1}}
    assert {"name", "format", "split", "rows", "bytes", "sha256"} == set(done["files"][0])
    listed = script("get", f"{script.here}/exports?count=true").json()
    assert listed["data"] == [done] and listed["total"] == 1 and listed["next_cursor"] is None


@pytest.mark.parametrize(
    ("recipe", "path", "words"),
    [
        ({"formats": ["csv"]}, "recipe.formats", "there is no format 'csv'"),
        ({"formats": []}, "recipe.formats", "at least 1 item"),
        ({"formats": ["dpo", "dpo"]}, "recipe.formats", "named twice"),
        ({}, "recipe.formats", "required"),
        ({"trainer": "abacus"}, "recipe.trainer", "there is no trainer 'abacus'; there are plain, trl, llamafactory"),
        ({**RECIPE, "gzip": True, "parquet": True}, "recipe.parquet", "choose gzip or parquet"),
        ({**RECIPE, "reasoning": "maybe"}, "recipe.reasoning", "'drop' or 'keep'"),
        ({**RECIPE, "filter": {"colour": "red"}}, "recipe.filter.colour", "unknown"),
        ({**RECIPE, "filter": {"bucket": "gold"}}, "recipe.filter.bucket", "gold"),
        ({**RECIPE, "formatz": 1}, "recipe.formatz", "unknown key"),
        ({**RECIPE, "splits": {"train": 0.5}}, "recipe.splits", "sum to 0.5"),
        ({**RECIPE, "splits": {"Test set": 1.0}}, "recipe.splits", "'Test set' is not a valid name"),
        ({**RECIPE, "splits": {"train": 1.5, "val": -0.5}}, "recipe.splits.train", "less than or equal to 1"),
        ({**RECIPE, "sources": ["dreams"]}, "recipe.sources.0", "'duels', 'revisions', 'scenarios' or 'decisions'"),
        ({**RECIPE, "max_tokens": 0}, "recipe.max_tokens", "greater than or equal to 1"),
        ("weekly", "recipe", "no saved recipe 'weekly'"),
    ],
)
def test_an_invalid_recipe_is_refused_with_the_path_of_each_error(recipe: object, path: str, words: str) -> None:
    script = Script()
    for call in ("exports", "exports/preview"):
        answer = script("post", f"{script.here}/{call}", {"recipe": recipe})
        assert answer.status_code == 422, answer.content
        places = {error["path"]: error["message"] for error in answer.json()["errors"]}
        assert words in places[path]
    assert not Export.objects.exists() and not Run.objects.exists()


def test_a_filter_that_matches_nothing_starts_no_export() -> None:
    script = Script()
    make_approved(script.project)
    answer = script("post", f"{script.here}/exports", {"recipe": {**RECIPE, "filter": {"repo": "nosuch"}}})
    assert answer.status_code == 422 and answer.json()["code"] == "no_samples"
    assert [error["path"] for error in answer.json()["errors"]] == ["recipe.filter"]
    assert not Export.objects.exists() and not Run.objects.exists()


def test_a_run_of_another_project_is_not_found_as_a_filter() -> None:
    script = Script()
    foreign = make_run(make_project())
    answer = script("post", f"{script.here}/exports", {"recipe": {**RECIPE, "filter": {"run": str(foreign.pk)}}})
    assert answer.status_code == 404 and not Export.objects.exists()


def test_a_stranger_compares_no_export_with_one_of_their_own() -> None:
    reader, stranger = Script(Role.ADMIN, "read"), Script()
    make_approved(reader.project)
    make_approved(stranger.project)
    export = export_of(reader.project, RECIPE)
    own = export_of(stranger.project, RECIPE)
    assert reader("get", f"/exports/{export.pk}/files/dpo.train.jsonl").status_code == 200
    for path in ("/files/dpo.train.jsonl", "/files/archive.tar", f"/diff/{own.pk}"):
        assert stranger("get", f"/exports/{export.pk}{path}").status_code == 404
    assert stranger("get", f"/exports/{own.pk}/diff/{export.pk}").status_code == 404


def test_the_preview_has_the_counts_of_the_export() -> None:
    script = Script()
    make_approved(script.project)
    make_approved(script.project, flags=Flag.LEAK)
    make_approved(script.project, pick="draw")
    make_duel(script.project, status=SampleStatus.REJECTED)
    make_duel(script.project)
    recipe = {**RECIPE, "filter": {}}
    found = script("post", f"{script.here}/exports/preview", {"recipe": recipe}).json()
    export = export_of(script.project, recipe)
    for key in ("samples", "exported", "rows", "excluded"):
        assert found[key] == export.counts[key], key
    assert found["exact"] and found["approved"] == found["checked"] == 3
    assert found["examples"] == export.examples
    assert found["bytes"] == sum(file.bytes for file in export.files.exclude(format=""))
    again = script("get", f"/exports/{export.pk}/preview").json()
    assert {**again, "changes": None} == found
    written = sum(sum(splits.values()) for splits in found["rows"].values())
    assert (again["changes"]["same"], again["changes"]["rows"]) == (written, [])


def test_recipes_are_saved_replaced_used_by_name_and_deleted() -> None:
    script = Script()
    make_approved(script.project)
    recipes = f"{script.here}/recipes"
    assert script("post", recipes, {"name": "weekly", "recipe": RECIPE}).status_code == 201
    assert script("post", recipes, {"name": "weekly", "recipe": {**RECIPE, "seed": 4}}).status_code == 200
    saved = script("get", recipes).json()["data"]
    assert [(row["name"], row["recipe"]["seed"]) for row in saved] == [("weekly", 4)]
    run = script("post", f"{script.here}/exports", {"recipe": "weekly"}).json()
    export = script("get", f"/exports/{run['result']['export']}").json()
    assert (export["recipe_name"], export["recipe"]["seed"]) == ("weekly", 4)
    assert script("post", recipes, {"name": "a/b", "recipe": RECIPE}).status_code == 422
    assert script("post", recipes, {"name": "bad", "recipe": {"formats": ["x"]}}).status_code == 422
    assert script("delete", f"{recipes}/weekly").status_code == 204
    assert script("delete", f"{recipes}/weekly").status_code == 404
    actions = AuditEntry.objects.filter(project=script.project).values_list("action", flat=True)
    assert {"recipe.create", "recipe.update", "recipe.delete", "run.launch"} <= set(actions)


def test_two_exports_differ_by_rows_added_removed_changed_and_moved() -> None:
    script, user = Script(), make_user()
    kept = [make_approved(script.project, by=user, instance_id=f"task-{number}") for number in range(3)]
    before = export_of(script.project, RECIPE)
    approve(kept[0], by=user, pick="opponent")
    kept[1].status = SampleStatus.REJECTED
    kept[1].save()
    late = make_approved(script.project, by=user)
    after = export_of(script.project, RECIPE)
    found = script("get", f"/exports/{before.pk}/diff/{after.pk}").json()
    assert [found[key] for key in ("added", "removed", "changed", "moved", "same")] == [2, 2, 2, 0, 2]
    changes = {(row["sample"], row["format"]): row["change"] for row in found["rows"]}
    assert changes[str(late.pk), "dpo"] == "added" and changes[str(kept[1].pk), "dpo"] == "removed"
    assert changes[str(kept[0].pk), "sft-messages"] == "changed"
    moved = export_of(script.project, {**RECIPE, "splits": {"val": 1.0}})
    found = script("get", f"/exports/{after.pk}/diff/{moved.pk}").json()
    assert (found["moved"], found["added"], found["removed"], found["changed"]) == (6, 0, 0, 0)


def test_an_export_that_is_not_written_can_neither_be_compared_nor_downloaded() -> None:
    script = Script()
    make_approved(script.project)
    run = script("post", f"{script.here}/exports", {"recipe": RECIPE}).json()
    pk = run["result"]["export"]
    assert script("get", f"/exports/{pk}/diff/{pk}").status_code == 409
    for name in ("dpo.train.jsonl", "archive.tar"):
        answer = script("get", f"/exports/{pk}/files/{name}")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_ready")
