"""Start an export: the run `export` from a recipe, or from a saved recipe's name."""

from collections.abc import Mapping

from curation.exports.recipes.recipe import read_recipe
from curation.projects.access import Access
from curation.runs.launch import launch
from curation.runs.models import Run


def start_export(*, access: Access, recipe: Mapping[str, object] | str) -> Run:
    """The launched run; its `result` names the export. Raises `Invalid` with the place of what is wrong."""
    given: object = recipe
    if not isinstance(recipe, str):
        given = read_recipe(recipe).model_dump(mode="json")
    return launch(project=access.project, kind="export", params={"recipe": given}, user=access.user)
