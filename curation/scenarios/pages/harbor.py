"""The page of a Harbor task: its instruction, environment, solution and tests, all texts escaped."""

from collections.abc import Mapping
from typing import Any

from django.utils.html import format_html

from curation.scenarios.bundles.harbor import TaskPart, stored_task
from curation.scenarios.models import Scenario
from curation.web.problems import Invalid
from curation.web.text.markup import code_html, render_output, render_text, visible, with_signs
from sandbox.harbor.task_folder import ENVIRONMENT, SOLUTION, STEPS, TESTS, TaskFolder

FOLD_FROM_BYTES = 2000


def fixture_view(path: str, mode: str, data: bytes) -> dict[str, object]:
    text = _as_text(data)
    html = None
    if text is not None and text.startswith("#!"):
        html = format_html('<pre class="code"><code>{}</code></pre>', code_html(text))
    elif text is not None:
        html = render_output(text)
    return {"path": visible(path), "mode": mode, "size": len(data), "html": html, "open": len(data) <= FOLD_FROM_BYTES}


def _as_text(data: bytes) -> str | None:
    if b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


SECTIONS = {ENVIRONMENT: "Environment", SOLUTION: "Solution", TESTS: "Tests"}


def task_view(row: Scenario) -> dict[str, object]:
    """Needs `with_bundle()`."""
    document: Mapping[str, Any] = row.text.bundle
    parts = [TaskPart.model_construct(**part) for part in document["files"]]
    task, problems = None, ""
    try:
        task = stored_task(document)
    except Invalid as refused:
        problems = refused.detail
    return {
        "plain_name": with_signs(row.name),
        "name": visible(row.name),
        "title": visible(row.title),
        "author": visible(row.authored_by),
        "reason": visible(row.reason),
        "axes": tuple((axis, with_signs(str(value))) for axis, value in row.axes.items()),
        "source": visible(document.get("source", "")),
        "instruction": render_text(task.instruction if task else ""),
        "facts": tuple((name, visible(text)) for name, text in _facts(task)) if task else (),
        "folders": tuple(_folders(parts)),
        "not_run_here": tuple(map(with_signs, task.not_run_here())) if task else (),
        "problems": with_signs(problems),
    }


def _facts(task: TaskFolder) -> list[tuple[str, str]]:
    config = task.config
    timeout = config.agent.timeout_sec
    facts = [
        ("Schema", config.schema_version),
        ("Image", config.environment.docker_image or "built from its Dockerfile"),
        ("Verifier", "in a machine of its own" if task.is_separate else "on the agent's machine"),
        ("Time", f"agent {f'{timeout:g} s' if timeout else 'unlimited'}, verifier {config.verifier.timeout_sec:g} s"),
        ("Steps", ", ".join(task.steps)),
    ]
    return [(name, text) for name, text in facts if text]


def _folders(parts: list[TaskPart]) -> list[dict[str, object]]:
    """The files by their folders; those of steps are with the task's own of the same kind."""
    found: dict[str, list[dict[str, object]]] = {title: [] for title in [*SECTIONS.values(), "Other files"]}
    for part in parts:
        names = part.path.split("/")
        kind = names[2] if names[0] == STEPS and len(names) > 3 else names[0]
        file = part.file()
        title = SECTIONS.get(kind, "Other files")
        found[title].append(fixture_view(part.path, getattr(part, "mode", "644"), file.data))
    return [{"title": title, "files": tuple(files)} for title, files in found.items() if files]
