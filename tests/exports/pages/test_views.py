"""The pages a curator uses: the list, a new export with its preview, one export, two compared."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from curation.exports.models import Export, SavedRecipe
from curation.exports.pages import context
from curation.projects.models import Project, Role
from curation.runs.launch import launch
from curation.samples.models import Flag
from tests.exports.exporting import approve, drive_export, export_of, make_approved
from tests.factories import make_member, make_project, make_sample, make_user

pytestmark = pytest.mark.django_db(transaction=True)
FORM = {"formats": ["sft-messages", "dpo"], "filter.status": "approved", "train": "1", "seed": "0"} | {
    "group_by": "instance_id",
    "sources": ["duels"],
}


def signed_in(client: Client, role: str = Role.CURATOR) -> Project:
    project = make_project()
    client.force_login(make_member(project, role=role))
    return project


def test_the_list_shows_each_export_with_rows_size_and_author(client: Client) -> None:
    project = signed_in(client)
    assert b"No exports yet" in client.get(reverse("export-list", args=[project.slug])).content
    make_approved(project)
    author = make_user("ada")
    export = export_of(project, {"formats": ["dpo"]}, user=author)
    page = client.get(reverse("export-list", args=[project.slug])).content.decode()
    assert f"Export {export.pk}" in page and "ada" in page and "Succeeded" in page


def test_the_form_starts_an_export_and_leads_to_its_page(client: Client) -> None:
    project = signed_in(client)
    make_approved(project)
    assert client.get(reverse("export-new", args=[project.slug])).status_code == 200
    answer = client.post(reverse("export-new", args=[project.slug]), FORM)
    export = Export.objects.get()
    assert answer.headers["Location"] == reverse("export-page", args=[project.slug, export.pk])
    under_way = client.get(answer.headers["Location"]).content.decode()
    assert "export-progress" in under_way and "Samples written" in under_way
    drive_export(export.run)
    page = client.get(answer.headers["Location"]).content.decode()
    assert "dpo.train.jsonl" in page and export.files.get(name="dpo.train.jsonl").sha256 in page
    assert "archive.tar" in page and "Manifest" in page and "How it was made" in page


def test_polling_ends_with_the_run(client: Client) -> None:
    project = signed_in(client)
    make_approved(project)
    run = launch(project=project, kind="export", params={"recipe": {"formats": ["dpo"]}}, user=None)
    url = reverse("export-progress", args=[project.slug, run.result["export"]])
    waiting = client.get(url)
    assert "every 1s" in waiting.content.decode() and "HX-Refresh" not in waiting.headers
    drive_export(run)
    ended = client.get(url)
    assert ended.headers["HX-Refresh"] == "true" and "every 1s" not in ended.content.decode()


def test_the_preview_counts_what_would_be_written_and_writes_nothing(client: Client) -> None:
    project = signed_in(client)
    make_approved(project)
    make_approved(project, flags=Flag.LEAK)
    page = client.post(reverse("export-preview", args=[project.slug]), FORM).content.decode()
    assert "leak" in page and "flagged as leaking" in page
    assert not Export.objects.exists()


def test_the_form_filters_by_its_fields_and_by_a_saved_view(client: Client) -> None:
    project = signed_in(client)
    make_approved(project, bucket="final", score=90.0)
    make_approved(project, bucket="refined", score=70.0)
    view = project.saved_views.create(name="best", query="bucket=final&sort=-score", created_by=make_user())
    for picked in ({"filter.bucket": "final"}, {"filter.score_min": "80"}, {"view": str(view.pk)}):
        client.post(reverse("export-new", args=[project.slug]), FORM | picked)
        export = drive_export(Export.objects.latest("pk").run)
        assert export.counts["exported"] == 1, picked


@pytest.mark.parametrize(
    ("change", "words"),
    [({"train": "0.5"}, "sum to 0.5"), ({"formats": ["parquet"]}, "parquet"), ({"filter.bucket": "gold"}, "gold")],
)
def test_an_invalid_form_shows_its_errors_and_starts_nothing(
    client: Client, change: dict[str, str], words: str
) -> None:
    project = signed_in(client)
    make_approved(project)
    answer = client.post(reverse("export-new", args=[project.slug]), FORM | change)
    assert answer.status_code == 422 and words in answer.content.decode()
    preview = client.post(reverse("export-preview", args=[project.slug]), FORM | change)
    assert words in preview.content.decode()
    assert not Export.objects.exists()


def test_a_recipe_is_saved_loaded_and_deleted(client: Client) -> None:
    project = signed_in(client)
    client.post(reverse("export-new", args=[project.slug]), FORM | {"save": "1", "name": "weekly", "seed": "7"})
    assert SavedRecipe.objects.get().document["seed"] == 7 and not Export.objects.exists()
    assert b"weekly" in client.get(reverse("export-list", args=[project.slug])).content
    form = client.get(reverse("export-new", args=[project.slug]) + "?recipe=weekly").content.decode()
    assert 'name="seed" value="7"' in form
    client.post(reverse("recipe-delete", args=[project.slug, "weekly"]))
    assert not SavedRecipe.objects.exists()


def test_a_recipe_that_somebody_else_has_saved_meanwhile_is_replaced_only_on_purpose(client: Client) -> None:
    project = signed_in(client)
    url = reverse("export-new", args=[project.slug])
    form = FORM | {"save": "1", "name": "weekly"}
    client.post(url, form | {"seed": "1"})
    opened = seen_in(client.get(url + "?recipe=weekly").content.decode())

    other = Client()
    other.force_login(make_member(project, make_user("grace"), Role.CURATOR))
    assert other.post(url, form | {"seed": "2", "seen": opened}).status_code == 302
    for seen in (opened, ""):
        refused = client.post(url, form | {"seed": "3", "seen": seen})
        assert refused.status_code == 409 and "grace has saved another recipe weekly" in refused.content.decode()
    assert SavedRecipe.objects.get().document["seed"] == 2
    assert client.post(url, form | {"seed": "2", "seen": opened}).status_code == 302, "a second click saves the same"
    again = form | {"seed": "3", "seen": seen_in(refused.content.decode())}
    assert client.post(url, again).status_code == 302 and SavedRecipe.objects.get().document["seed"] == 3


def seen_in(page: str) -> str:
    found = re.search('name="seen" value="([0-9a-f]+)"', page)
    assert found
    return found[1]


def test_two_exports_are_compared(client: Client) -> None:
    project = signed_in(client)
    make_approved(project)
    first = export_of(project, {"formats": ["dpo"]})
    late = make_approved(project)
    second = export_of(project, {"formats": ["dpo"]})
    url = reverse("export-compare", args=[project.slug, second.pk])
    page = client.get(url, {"with": first.pk}).content.decode()
    assert "added" in page and reverse("sample-page", args=[project.slug, late.pk]) in page


def test_the_page_links_skipped_samples_and_says_what_it_does_not_show(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = signed_in(client)
    bare = approve(make_sample(project), by=make_user())
    export = export_of(project, {"formats": ["dpo"]})
    address = reverse("export-page", args=[project.slug, export.pk])
    page = client.get(address).content.decode()
    assert "no_answer" in page and reverse("sample-page", args=[project.slug, bare.pk]) in page
    assert "The rest is in the file" not in page
    monkeypatch.setattr(context, "MAX_READ", 200)
    assert "The rest is in the file manifest.json." in client.get(address).content.decode()


def test_a_hostile_project_name_is_text_on_the_card(client: Client) -> None:
    project = make_project(name="<script>alert(1)</script> [x](javascript:alert(1))")
    client.force_login(make_member(project, role=Role.CURATOR))
    make_approved(project)
    export = export_of(project, {"formats": ["dpo"]})
    page = client.get(reverse("export-page", args=[project.slug, export.pk])).content.decode()
    assert "<script>alert" not in page and 'href="javascript' not in page


def test_choosing_a_trainer_checks_its_formats_and_counts_them(client: Client) -> None:
    project = signed_in(client)
    response = client.get(reverse("export-formats", args=[project.slug]), {"trainer": "axolotl"})
    checked = re.findall(r'value="([\w-]+)"[^>]*checked', response.content.decode())
    assert checked == ["axolotl-chat", "axolotl-dpo"]
    assert response["HX-Trigger-After-Swap"] == '{"formats": {}}'


def test_the_form_takes_trainer_storage_and_reasoning(client: Client) -> None:
    project = signed_in(client)
    make_approved(project)
    given = {**FORM, "trainer": "llamafactory", "formats": ["llamafactory-sft"], "parquet": "on", "reasoning": "keep"}
    client.post(reverse("export-new", args=[project.slug]), given)
    recipe = Export.objects.get().recipe
    assert (recipe["trainer"], recipe["parquet"], recipe["reasoning"]) == ("llamafactory", True, "keep")
    again = client.get(reverse("export-new", args=[project.slug]), {"from": Export.objects.get().pk}).content.decode()
    assert '<option value="llamafactory" selected>' in again


def test_a_filter_that_matches_nothing_is_refused_at_its_field(client: Client) -> None:
    project = signed_in(client)
    make_approved(project)
    answer = client.post(reverse("export-new", args=[project.slug]), FORM | {"filter.instance_id": "nosuch"})
    assert answer.status_code == 422 and not Export.objects.exists()
    assert "0 samples match this filter" in str(answer.context["form"].errors["filter"])
    assert 'name="filter.instance_id" value="nosuch"' in answer.content.decode()


def test_an_export_ends_with_an_evaluation(client: Client) -> None:
    project = signed_in(client)
    for _ in range(8):
        make_approved(project)
    export = export_of(project, {"formats": ["sft-messages"], "splits": {"train": 0.5, "val": 0.5}})
    address = reverse("export-page", args=[project.slug, export.pk])
    page = client.get(address).content.decode()
    assert f'<a class="btn btn--primary" href="/p/{project.slug}/evaluations/new/">Evaluate a model</a>' in page
    split = f"/p/{project.slug}/runs/new/?kind=split&export={export.pk}"
    assert f'href="{split.replace("&", "&amp;")}"' in page
    form = client.get(split).content.decode()
    assert f'<option value="{export.pk}" selected>' in form and '<option value="val" selected>' in form
    client.force_login(make_member(project, role=Role.VIEWER))
    assert "Evaluate a model" not in client.get(address).content.decode()


def test_samples_that_were_held_against_nothing_are_not_called_free_of_contamination(client: Client) -> None:
    project = signed_in(client)
    make_approved(project)
    export = export_of(project, {"formats": ["dpo"]})
    page = client.get(reverse("export-contaminated", args=[project.slug, export.pk])).content.decode()
    assert "Not compared" in page and "No contamination" not in page
