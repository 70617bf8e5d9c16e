"""The preview of a recipe: the first rows as a trainer reads them, row lengths and warnings."""

import html
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from curation.exports.formats import FORMATS
from curation.exports.models import Export
from curation.exports.pages.preview import RenderedRowOut, preview
from curation.exports.recipes.recipe import Recipe
from curation.projects.models import Role
from curation.trajectories.models import TrajectoryText
from tests.exports.exporting import OF_ANSWERS, export_of, make_approved, make_kept
from tests.exports.pages.test_views import FORM
from tests.factories import CHALLENGER, KING, make_bearer, make_duel, make_member, make_project

pytestmark = pytest.mark.django_db(transaction=True)


def rows_of(recipe: dict[str, Any]) -> dict[str, list[RenderedRowOut]]:
    project = make_project()
    make_approved(project)
    found: dict[str, list[RenderedRowOut]] = {}
    for row in preview(project=project, recipe=Recipe.model_validate(recipe)).sample_rows:
        found.setdefault(row.format, []).append(row)
    return found


def test_every_format_shows_its_rows_with_what_is_learned_and_what_is_rejected() -> None:
    names = OF_ANSWERS
    found = rows_of({"formats": names})

    assert set(found) == set(names)
    for name, rows in found.items():
        parts = rows[0].parts
        assert [part.role for part in parts][:2] == ["system", "user"], name
        assert [part.text for part in parts if part.use == "learned"] == [CHALLENGER], name
        rejected = [part.text for row in rows for part in row.parts if part.use == "rejected"]
        assert rejected == ([KING] if FORMATS[name].pairs else []), name


def test_labelled_steps_and_documents_are_shown_as_sessions() -> None:
    project = make_project()
    trajectory = make_kept(project, commands=("todo", "ls"))
    TrajectoryText.objects.filter(trajectory=trajectory).update(
        marks={"1": {"label": "correct"}, "3": {"label": "useless"}}
    )
    recipe = Recipe.model_validate({"formats": ["stepwise", "atif"]})
    steps, document = preview(project=project, recipe=recipe).sample_rows

    assert [part.text for part in steps.parts if part.use == "learned"] == ["todo"]
    assert [part.text for part in document.parts if part.use == "learned"] == ["todo", "ls", "exit"]


def test_all_commands_of_a_session_are_learned_where_the_row_says_so() -> None:
    project = make_project()
    make_kept(project, commands=("todo", "ls"))
    row = preview(project=project, recipe=Recipe.model_validate({"formats": ["axolotl-chat"]})).sample_rows[0]

    assert [part.text for part in row.parts if part.use == "learned"] == ["todo", "ls", "exit"]


def test_ten_rows_of_each_format_are_shown_and_a_long_message_is_shortened() -> None:
    project = make_project()
    for _ in range(12):
        make_approved(project)
    make_approved(project, challenger="word " * 3000)
    recipe = Recipe.model_validate({"formats": ["dpo"], "filter": {}})

    found = preview(project=project, recipe=recipe)

    counts: Any = found.counts
    assert len(found.sample_rows) == 10
    assert counts["rows"] == {"dpo": {"train": 13}}
    assert counts["tokens"]["rows"] == [12, 0, 0, 1, 0, 0, 0, 0]


def test_empty_splits_and_formats_are_warned_of_before_and_after_writing() -> None:
    project = make_project()
    make_approved(project, pick="draw")
    recipe = {"formats": ["sft-messages", "dpo"], "splits": {"train": 0.5, "val": 0.5}}

    warnings: Any = preview(project=project, recipe=Recipe.model_validate(recipe)).counts["warnings"]

    assert warnings[0] == "dpo gets no rows."
    assert len(warnings) == 2 and warnings[1].startswith("The split ")
    assert export_of(project, recipe).counts["warnings"] == warnings


def test_the_fragment_shows_the_rows() -> None:
    project = make_project()
    make_approved(project)
    client = Client()
    client.force_login(make_member(project, role="curator"))
    form = {"formats": "dpo", "train": "1", "seed": "0", "group_by": "auto", "sources": "duels"}

    page = client.post(f"/p/{project.slug}/exports/preview/", form).content.decode()

    assert "First rows of dpo, as a trainer reads them" in page
    assert "&lt;|im_start|&gt;assistant" in page
    assert "up to 512" in page


def test_a_recipe_without_rows_says_why_before_it_is_exported_and_what_is_next(client: Client) -> None:
    project = make_project()
    user = make_member(project, role=Role.CURATOR)
    client.force_login(user)
    headers = make_bearer(user)
    wanted = {"formats": ["sft-messages"]}

    def said(**given: str) -> tuple[str, str]:
        url = f"/api/v1/projects/{project.slug}/exports/preview"
        body = {"recipe": {**wanted, "filter": {name.removeprefix("filter."): text for name, text in given.items()}}}
        answer = client.post(url, body, content_type="application/json", headers=headers).json()
        page = client.post(
            reverse("export-preview", args=[project.slug]), FORM | {"filter.status": ""} | given
        ).content.decode()
        assert answer["warnings"][0] in html.unescape(page)
        return answer["warnings"][0], page

    warning, page = said()
    assert warning.startswith("0 rows match: the project has no samples") and "/imports/new/?kind=samples" in page
    sample = make_duel(project).sample
    warning, page = said()
    assert "none of 1 matching sample is approved" in warning and f'href="/p/{project.slug}/queue/' in page
    warning, _ = said(**{"filter.repo": "nowhere"})
    assert "no sample matches the filter" in warning
    assert sample is not None and not Export.objects.exists()
