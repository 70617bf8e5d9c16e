"""Rows are tried against a chat template, before the export and in it."""

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from curation.exports.pages.preview import preview
from curation.exports.recipes.recipe import Recipe
from curation.exports.rows.chat_template import reference_templates
from curation.projects.models import Project, Role
from curation.runs.launch import launch
from curation.web.problems import Invalid
from tests.exports.exporting import approve, export_of, make_approved, reasons, rows
from tests.factories import called, make_imported, make_member, make_project, make_user, set_history

pytestmark = pytest.mark.django_db(transaction=True)
STRICT = """{% for message in messages %}{% if message.role == "system" %}{{ raise_exception("no system") }}{% endif %}
{{ message.content }}{% if message.tool_calls %}{{ message.tool_calls | tojson }}{% endif %}{% endfor %}"""
CHAT = "{% for message in messages %}{{ message.content }}{{ message.tool_calls | tojson }}{% endfor %}"
DONE = {"source": "agent", "message": "Done."}


def fill(project: Project) -> tuple[str, str]:
    """A turn, and a session with a system prompt whose agent calls a tool; the ids of their samples."""
    user = make_user()
    turn = make_approved(project, by=user)
    set_history(turn.duel.prompt, [{"role": "user", "content": "Fix it."}])
    approve(turn, by=user)
    session = make_imported(project, called("ls", "a"), DONE)
    approve(session.sample, by=user)
    return str(turn.pk), str(session.sample_id)


def test_rows_that_fail_are_named_before_the_export_and_counted_in_it() -> None:
    project = make_project()
    turn, session = fill(project)
    recipe = {"formats": ["sft-messages", "sft-prompt-completion", "atif"], "chat_template": STRICT}
    found = preview(project=project, recipe=Recipe.model_validate(recipe)).counts["template"]
    assert isinstance(found, dict)
    assert (found["tried"], found["failed"], found["left_out"]) == (5, {"template_error": 3}, False)
    assert found["examples"][0] == {
        "sample": session,
        "format": "sft-messages",
        "reason": "template_error",
        "detail": "TemplateError: no system",
    }
    export = export_of(project, recipe)
    assert export.counts["template"] == found
    assert len(rows(export, "sft-messages.train.jsonl")) == 2 and reasons(export) == {turn: "no_session"}
    assert any("fail in the chat template" in warning for warning in export.counts["warnings"])


def test_rows_that_fail_are_left_out_if_the_recipe_says_so() -> None:
    project = make_project()
    _, session = fill(project)
    recipe = {"formats": ["sft-messages"], "chat_template": STRICT, "template_failures": "leave_out"}
    export = export_of(project, recipe)
    assert reasons(export) == {session: "template_error"}
    assert len(rows(export, "sft-messages.train.jsonl")) == 1


def test_both_sides_of_a_preference_are_tried() -> None:
    project = make_project()
    make_approved(project, king="THOUGHT: the losing side")
    template = "{% for m in messages %}{% if 'losing' not in m.content %}{{ m.content }}{% endif %}{% endfor %}"
    export = export_of(project, {"formats": ["dpo"], "chat_template": template})
    assert export.counts["template"]["failed"] == {"not_rendered": 1}


def test_calls_of_tools_that_a_row_does_not_declare_are_named() -> None:
    project = make_project()
    session = make_imported(project, called("ls", "a"), DONE)
    session.text.document = {"agent": {"name": "a", "version": "1"}}
    session.text.save()
    approve(session.sample, by=make_user())
    export = export_of(project, {"formats": ["sft-messages"], "chat_template": CHAT})
    assert export.counts["template"]["failed"] == {"undeclared_tool": 1}
    assert export.counts["template"]["examples"][0]["detail"] == "called: bash"


@pytest.mark.parametrize(
    ("name", "failed"),
    [*((name, {}) for name in ("qwen2_5", "qwen3", "llama3_1", "glm4moe")), ("llama3", {"not_rendered": 2})],
)
def test_reference_templates_render_sessions_with_tools(name: str, failed: dict[str, int]) -> None:
    """Llama 3 has no tools: its template drops their calls."""
    assert name in reference_templates()
    project = make_project()
    session = make_imported(project, called("ls -l 'a b' \"c\"", "a"), called("cat a", "1", 2), DONE)
    approve(session.sample, by=make_user())
    export = export_of(project, {"formats": ["sft-prompt-completion"], "chat_template": name})
    assert (export.counts["template"]["tried"], export.counts["template"]["failed"]) == (3, failed)


def test_the_projects_template_is_the_default() -> None:
    project = make_project(settings_json={"export": {"chat_template": "qwen3"}})
    make_approved(project)
    recipe: dict[str, Any] = {"formats": ["sft-messages"]}
    assert export_of(project, recipe).counts["template"]["name"] == "qwen3"
    assert export_of(project, {**recipe, "chat_template": "none"}).counts["template"] is None


@pytest.mark.parametrize(("given", "reason"), [("nothing", "there is no template 'nothing'"), ("{% if %}", "line 1")])
def test_a_template_that_cannot_be_read_is_refused_at_the_launch(given: str, reason: str) -> None:
    project = make_project()
    make_approved(project)
    with pytest.raises(Invalid) as refused:
        launch(
            project=project, kind="export", params={"recipe": {"formats": ["dpo"], "chat_template": given}}, user=None
        )
    assert reason in str(refused.value.errors)


def test_a_file_is_uploaded_with_the_form(client: Client) -> None:
    project = make_project()
    client.force_login(make_member(project, role=Role.ADMIN))
    fill(project)
    form = {"formats": "sft-messages", "train": "1", "seed": "0", "group_by": "auto", "sources": "duels"}
    form["template_file"] = SimpleUploadedFile("strict.jinja", STRICT.encode())  # type: ignore[assignment]
    page = client.post(f"/p/{project.slug}/exports/preview/", form).content.decode()
    assert "TemplateError: no system" in page and "2 rows tried" in page
