"""The chat template against which the rows of an export are tried: one that an installed `trl` ships, or a text."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from curation.exports.recipes.recipe import Recipe
from curation.projects.models import Project
from curation.web.problems import Invalid
from judging.chat_template.template import ChatTemplate, TemplateRefused

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
