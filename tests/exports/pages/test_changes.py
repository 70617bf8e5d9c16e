"""What changed since the last export of a recipe, in the preview: before anything is written."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from curation.exports.models import Export
from curation.exports.pages import preview as preview_module
from curation.exports.pages.preview import last_export, preview
from curation.exports.recipes.recipe import Recipe, save_recipe
from curation.projects.access import Access
from curation.projects.models import Project, Role, Scope
from curation.samples.models import Sample, SampleStatus
from tests.exports.exporting import answer, approve, export_of, make_approved, revise
from tests.factories import make_duel, make_project, make_user

pytestmark = pytest.mark.django_db(transaction=True)
SFT = {"formats": ["sft-messages"]}


def changes(project: Project, since: Export, **recipe: Any) -> dict[int, tuple[str, str]]:
    """Return change and reason by sample, checked against the counts, and against an export that is made now."""
    given = {**since.recipe, **recipe}
    found = preview(project=project, recipe=Recipe.model_validate(given), since=since).changes
    assert found is not None
    counted = {name: getattr(found, name) for name in ("added", "removed", "changed", "moved")}
    assert sum(counted.values()) == len(found.rows) == sum(rows for _, _, rows in found.reason_lines())
    return {int(row.sample): (row.change, row.reason) for row in found.rows}


def test_each_kind_of_change_has_its_reason() -> None:
    project, user = make_project(), make_user()
    names = ("same", "revised", "rejected", "deleted", "reopened", "leaks", "unmatched")
    samples = {name: make_approved(project, by=user, challenger=answer(n)) for n, name in enumerate(names)}
    late = make_duel(project, challenger=answer(90)).sample
    cleared = make_approved(project, by=user, challenger=answer(91), flags=1)
    assert late is not None
    Sample.objects.filter(pk=cleared.pk).update(leak_cleared=False)
    before = export_of(project, {**SFT, "filter": {"score_min": 10}})
    assert before.counts["exported"] == len(names)

    revise(samples["revised"], answer(50), by=user)
    approve(samples["revised"], by=user)
    Sample.objects.filter(pk=samples["rejected"].pk).update(status=SampleStatus.REJECTED)
    Sample.objects.filter(pk=samples["reopened"].pk).update(status=SampleStatus.PENDING)
    Sample.objects.filter(pk=samples["leaks"].pk).update(flags=1, leak_cleared=False)
    Sample.objects.filter(pk=samples["unmatched"].pk).update(score=1.0, score_key=1.0)
    Sample.objects.filter(pk=cleared.pk).update(leak_cleared=True)
    approve(late, by=user)
    deleted = samples["deleted"].pk
    samples["deleted"].delete()

    assert changes(project, before) == {
        samples["revised"].pk: ("changed", "text"),
        samples["rejected"].pk: ("removed", "rejected"),
        deleted: ("removed", "deleted"),
        samples["reopened"].pk: ("removed", "not_approved"),
        samples["leaks"].pk: ("removed", "leak"),
        samples["unmatched"].pk: ("removed", "not_matched"),
        late.pk: ("added", "not_approved"),
        cleared.pk: ("added", "leak"),
    }


def test_other_ways_in_which_a_row_differs() -> None:
    project = make_project()
    samples = [make_approved(project, challenger=answer(n), instance_id=f"i-{n}") for n in range(4)]
    before = export_of(project, {**SFT, "metadata": True})
    assert changes(project, before) == {}

    Sample.objects.filter(pk=samples[0].pk).update(score=7.0, score_key=7.0)
    assert changes(project, before) == {samples[0].pk: ("changed", "scored")}
    Sample.objects.filter(pk=samples[0].pk).update(score=samples[0].score, score_key=samples[0].score)
    assert set(changes(project, before, splits={"val": 1.0}).values()) == {("moved", "split")}
    assert set(changes(project, before, metadata=False).values()) == {("changed", "written")}
    Sample.objects.filter(pk=samples[1].pk).update(repo="acme/other")
    assert changes(project, before) == {samples[1].pk: ("changed", "written")}


def test_the_diff_of_two_exports_has_the_same_reasons() -> None:
    user = make_user()
    project = make_project(user=user)
    first = make_approved(project, by=user, challenger=answer(1))
    second = make_approved(project, by=user, challenger=answer(2))
    Sample.objects.filter(pk=second.pk).update(flags=1, leak_cleared=False)
    before = export_of(project, SFT)
    Sample.objects.filter(pk=second.pk).update(leak_cleared=True)
    Sample.objects.filter(pk=first.pk).update(status=SampleStatus.REJECTED)
    after = export_of(project, SFT)
    client = Client()
    client.force_login(user)

    found = client.get(f"/api/v1/exports/{before.pk}/diff/{after.pk}").json()

    assert found["reasons"] == {"added": {"leak": 1}, "removed": {"rejected": 1}}
    assert {row["sample"]: row["reason"] for row in found["rows"]} == {
        str(first.pk): "rejected",
        str(second.pk): "leak",
    }
    page = client.get(f"/p/{project.slug}/exports/{after.pk}/compare/?with={before.pk}").content.decode()
    assert "A person rejected the sample." in page


def test_page_and_api_compare_with_the_last_export_of_the_recipe() -> None:
    user = make_user()
    project = make_project(user=user)
    sample = make_approved(project, by=user, challenger=answer(1))
    export_of(project, SFT)
    last = export_of(project, SFT)
    export_of(project, {"formats": ["dpo"]})
    Sample.objects.filter(pk=sample.pk).update(status=SampleStatus.REJECTED)
    client = Client()
    client.force_login(user)

    url = f"/api/v1/projects/{project.slug}/exports/preview"
    found = client.post(url, {"recipe": SFT}, "application/json").json()["changes"]
    assert (found["since"], found["removed"], found["reasons"]) == (str(last.pk), 1, {"removed": {"rejected": 1}})
    assert client.get(f"/api/v1/exports/{last.pk}/preview").json()["changes"] == found
    assert client.post(url, {"recipe": {"formats": ["kto"]}}, "application/json").json()["changes"] is None
    form: dict[str, Any] = {"formats": "sft-messages", "train": "1", "seed": "0", "group_by": "auto"}
    form |= {"sources": ["duels", "scenarios", "decisions"], "near_duplicates": "0.85"}
    fragment = client.post(f"/p/{project.slug}/exports/preview/", form).content.decode()
    assert f"export {last.pk}</a>" in fragment
    assert "A person rejected the sample." in fragment
    again = client.post(f"/p/{project.slug}/exports/preview/", {**form, "formats": "kto", "since": str(last.pk)})
    assert f"export {last.pk}</a>" in again.content.decode()
    assert Export.objects.count() == 3


def test_a_saved_recipe_is_compared_with_its_last_export_also_after_it_was_changed() -> None:
    user: User = make_user()
    project = make_project(user=user)
    make_approved(project, by=user)
    access = Access(user=user, project=project, role=Role.ADMIN, scopes=frozenset(Scope))
    save_recipe(access=access, name="weekly", recipe=Recipe.model_validate(SFT))
    export = export_of(project, "weekly")
    changed = Recipe.model_validate({**SFT, "metadata": True})

    assert last_export(project, changed, "weekly") == export
    assert last_export(project, changed) is None


def test_a_preview_that_checked_some_samples_compares_only_those(monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_project()
    samples = [make_approved(project, challenger=answer(n)) for n in range(4)]
    before = export_of(project, SFT)
    Sample.objects.filter(pk__in=[samples[0].pk, samples[3].pk]).update(status=SampleStatus.REJECTED)
    monkeypatch.setattr(preview_module, "MAX_CHECKED", 1)

    assert changes(project, before) == {samples[0].pk: ("removed", "rejected")}
