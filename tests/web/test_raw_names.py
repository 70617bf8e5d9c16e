"""No page shows the names that programs use, `params.judges` or `min_judges`, nor backticks, outside of code; nor what
reorders text in names of files."""

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from django.apps import apps
from django.db import models
from django.db.models import Value
from django.db.models.functions import Concat, Left
from django.test import Client
from django.urls import reverse

from curation.duels.models import Duel, Exclusion
from curation.llm.models import Endpoint
from curation.runs.kinds import listed_kinds
from curation.trajectories.models import Trajectory
from tests.factories import make_answer, make_imported, make_project, make_prompt, make_sample, make_user
from tests.web.test_wording import QUERY
from tests.web.test_wording import world as world

pytestmark = pytest.mark.django_db
NAME = re.compile(r"(?<![\w./`“=-])(?:params\.\w+|[a-z][a-z0-9]*(?:_[a-z0-9]+)+)(?![\w/=-]|\.\w)|`")
# Texts of a machine, or for one.
CODE = ("code", "pre", "kbd", "textarea", "script", "style", "template", "samp")
VOID = ("input", "br", "img", "meta", "link", "hr", "wbr", "use", "path", "col", "source")
# Names that people type, or that their files and servers have: axes of a taxonomy, columns of a file, parameters of a
# model's API, words of a setting.
GIVEN = {
    *("doc_depth", "task_id", "instance_id", "reference_solution", "expected_terminal"),
    *("max_tokens", "max_completion_tokens", "keep_out", "error_type"),
}
# Text of models and of files, as it was.
QUOTED = {"components", "prompt-page"}


class _Prose(HTMLParser):
    """The text of a page outside of code, and outside of everything in monospace."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._open: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in VOID:
            return
        classes = (dict(attrs).get("class") or "").split()
        self._open.append((tag, tag in CODE or "mono" in classes or "terminal" in classes))
        self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass
        self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not any(code for _, code in self._open):
            self.parts.append(data)


def raw_names(page: str) -> list[str]:
    parser = _Prose()
    parser.feed(page)
    text = "".join(parser.parts)
    return [
        f"…{text[max(0, found.start() - 30) : found.end() + 30].strip()!r}…"
        for found in NAME.finditer(text)
        if found[0] not in GIVEN
    ]


def test_names_of_programs_are_found_outside_of_code_only() -> None:
    page = (
        "<p>“params.judges”: set min_judges</p><code>min_judges</code><td class='mono'>a_b</td><p>Give a `split`.</p>"
    )
    assert len(raw_names(page)) == 3


def test_no_page_shows_the_names_that_programs_use(client: Client, world: dict[str, list[str]]) -> None:
    urls = {
        name: reverse(name, args=arguments) + QUERY.get(name, "")
        for name, arguments in world.items()
        if name not in QUOTED
    }
    launch = reverse("run-new", args=["demo"])
    urls |= {f"launch {kind.name}": f"{launch}?kind={kind.name}" for kind in listed_kinds()}
    wrong = {}
    for name, url in urls.items():
        answer = client.get(url, follow=True)
        assert answer.status_code == 200, name
        if found := raw_names(answer.content.decode()):
            wrong[name] = found
    assert wrong == {}


def test_no_refusal_of_a_launch_shows_them(client: Client, world: dict[str, list[str]]) -> None:
    wrong = {}
    for kind in listed_kinds():
        if kind.launch_page != "run-new":
            continue
        sent = dict.fromkeys(kind.params.model_fields, "x y") | {"filter.run": "x"}
        answer = client.post(f"{reverse('run-new', args=['demo'])}?kind={kind.name}", sent)
        assert answer.status_code == 422, kind.name
        if found := raw_names(answer.content.decode()):
            wrong[kind.name] = found
    for name in ("import-new", "export-new", "evaluation-new", "evaluation-new-live", "webhook-list", "model-new"):
        answer = client.post(reverse(name, args=["demo"]), {"kind": "nosuch", "name": "a b"})
        if found := raw_names(answer.content.decode()):
            wrong[name] = found
    assert wrong == {}


REORDERS = "\u202e"


def test_names_of_a_file_do_not_reorder_the_page(client: Client) -> None:
    user = make_user()
    project = make_project("acme", user=user)
    client.force_login(user)
    names: dict[str, Any] = {
        "source": f"turns{REORDERS}.jsonl",
        "repo": f"acme/{REORDERS}bill",
        "instance_id": f"acme{REORDERS}-1",
    }
    prompt = make_prompt(project, **names)
    sample = make_sample(project, **names)
    answer = make_answer(prompt, "challenger", text="ls")
    duel = Duel.objects.create(project=project, prompt=prompt, challenger=answer, opponent="none", sample=sample)
    Exclusion.objects.create(project=project, instance_id=names["instance_id"], reason="broken")
    make_imported(project, task="x", **{"source": names["source"], "source_id": REORDERS, "agent": REORDERS})
    reordered = []
    for path in (
        *("samples/", f"samples/{sample.pk}/", "prompts/", f"prompts/{prompt.pk}/", "prompts/exclusions/", "duels/"),
        *(f"duels/{duel.pk}/", f"trajectories/{Trajectory.objects.get().pk}/"),
    ):
        answered = client.get(f"/p/acme/{path}")
        assert answered.status_code == 200, path
        # The value of an input is the name itself.
        shown = re.sub(r'<input[^>]*>|<[^>]* href="[^"]*"', "", answered.content.decode())
        if REORDERS in shown:
            reordered.append((path, shown[shown.index(REORDERS) - 80 :][:100]))
    assert reordered == []


def test_no_name_that_people_type_reorders_a_page(client: Client, world: dict[str, list[str]]) -> None:
    renamed = set()
    for model in apps.get_models():
        if not model.__module__.startswith("curation.") or model is Endpoint:  # whose names have no such signs
            continue
        for field in model._meta.concrete_fields:
            if isinstance(field, models.CharField) and field.name in ("name", "title", "task") and not field.choices:
                named = Concat(Left(field.name, 50), Value(REORDERS))
                if model._default_manager.update(**{field.name: named}):
                    renamed.add(model.__name__)
    assert renamed >= {"Project", "Scenario", "Split"}
    reordered = {}
    for name, arguments in world.items():
        answered = client.get(reverse(name, args=arguments) + QUERY.get(name, ""), follow=True)
        assert answered.status_code == 200, name
        # Values of fields are the names themselves.
        shown = re.sub(r'<textarea.*?</textarea>|[\w-]+="[^"]*"', "", answered.content.decode(), flags=re.DOTALL)
        if REORDERS in shown:
            reordered[name] = shown[max(0, shown.index(REORDERS) - 80) :][:100]
    assert reordered == {}
