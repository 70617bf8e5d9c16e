"""Rows tried against a chat template, as a trainer renders them: one that an installed `trl` ships, or a text."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from curation.exports.formats.row import DataRow, TrainingExample
from curation.exports.recipes.recipe import Recipe
from curation.exports.rows.messages import ExportedMessage, with_objects
from curation.projects.models import Project
from curation.web.problems import Invalid
from judging.chat_template.template import ChatTemplate, Failure, TemplateRefused

NONE, OWN = "none", "template of the recipe"
_NAME = re.compile(r"[\w.-]{1,60}")
_FIELD = "recipe.chat_template"


@dataclass(frozen=True, slots=True)
class TemplateText:
    name: str
    text: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


@cache
def reference_templates() -> Mapping[str, Path]:
    """Return the templates that an installed `trl` ships, by name; none without it."""
    spec = find_spec("trl")
    if spec is None or spec.origin is None:
        return {}
    return {path.stem: path for path in sorted((Path(spec.origin).parent / "chat_templates").glob("*.jinja"))}


def template_of(project: Project, recipe: Recipe) -> TemplateText | None:
    """Return the template of a recipe, or else the project's, or None. Raises `Invalid` for an unknown name."""
    given = recipe.chat_template or project.settings.export.chat_template
    if given in ("", NONE):
        return None
    if not _NAME.fullmatch(given):
        return TemplateText(OWN, given)
    path = reference_templates().get(given)
    if path is None:
        names = ", ".join(reference_templates()) or "none: trl is not installed here, so give the text of a template"
        raise Invalid.at(_FIELD, f"there is no template {given!r}; there are {names}")
    return TemplateText(given, path.read_text(encoding="utf-8"))


def check_template(project: Project, recipe: Recipe) -> None:
    """Raise `Invalid` if the recipe's template is not known or cannot be read."""
    found = template_of(project, recipe)
    if found is None or found.name != OWN:
        return
    try:
        ChatTemplate(found.text).close()
    except TemplateRefused as refused:
        raise Invalid.at(_FIELD, f"is no chat template: {refused}") from None


class TemplateTrial:
    """Tries rows, those with the same messages once. After `most` rows it tries no more."""

    def __init__(self, template: ChatTemplate, *, most: int | None = None) -> None:
        self._template, self._left = template, most
        self._example: TrainingExample | None = None
        self._known: dict[tuple[int, ...], Failure | None] = {}

    def try_out(self, row: DataRow, example: TrainingExample) -> list[Failure | None]:
        """Return why a row fails, or None, or nothing after the last try."""
        if self._left is not None:
            if self._left <= 0:
                return []
            self._left -= 1
        if example is not self._example:
            self._example, self._known = example, {}
        failures = [self._side(row, side, example) for side in row.sides]
        return [next(filter(None, failures), None)]

    def _side(self, row: DataRow, side: Sequence[ExportedMessage], example: TrainingExample) -> Failure | None:
        messages = [*row.prompt, *side]
        learned = [index for index in range(len(row.prompt), len(messages)) if messages[index]["role"] == "assistant"]
        learned = learned if side else list(example.approved)
        key = (*map(id, messages), -1, *learned)
        if key not in self._known:
            self._known[key] = self._template.try_out(with_objects(messages), example.tools, learned)
        return self._known[key]


@contextmanager
def open_trial(template: TemplateText | None, *, most: int | None = None) -> Iterator[TemplateTrial | None]:
    """Open a trial of at most so many rows, if there is a template. Raises `TemplateRefused`."""
    if template is None:
        yield None
        return
    with ChatTemplate(template.text) as opened:
        yield TemplateTrial(opened, most=most)
