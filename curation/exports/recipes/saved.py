"""Saved recipes: kept by name, replaced by the same name, named instead of a recipe, deleted."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.db import transaction

from curation.exports.models import Recipe as SavedRecipe
from curation.exports.recipes.recipe import Recipe, read_recipe
from curation.projects.access import Access
from curation.projects.audit import record
from curation.projects.models import Project
from curation.web.problems import FieldError, Invalid, NotFound


@dataclass(frozen=True, slots=True)
class Saved:
    row: SavedRecipe
    created: bool


def save_recipe(*, access: Access, name: str, document: Mapping[str, object]) -> Saved:
    """Checks and keeps the recipe under its name, over an earlier one of that name. Raises `Invalid`."""
    recipe = read_recipe(document).model_dump(mode="json")
    with transaction.atomic():
        row, created = SavedRecipe.objects.update_or_create(
            project=access.project, name=name, defaults={"document": recipe, "created_by": access.user}
        )
        record(
            actor=access.user,
            project=access.project,
            action="recipe.create" if created else "recipe.update",
            subject=name,
            data={"recipe": recipe},
        )
    return Saved(row, created)


def delete_recipe(*, access: Access, name: str) -> None:
    """Exports made from it keep their own copy. Raises `NotFound`."""
    with transaction.atomic():
        deleted, _ = SavedRecipe.objects.filter(project=access.project, name=name).delete()
        if not deleted:
            raise NotFound(f"There is no saved recipe {name!r}.")
        record(actor=access.user, project=access.project, action="recipe.delete", subject=name)


def recipe_of(project: Project, given: Recipe | Mapping[str, object] | str) -> Recipe:
    """The recipe itself, from a document or a saved one's name; raises `Invalid`."""
    if isinstance(given, Recipe):
        return given
    if not isinstance(given, str):
        return read_recipe(given)
    saved = SavedRecipe.objects.filter(project=project, name=given).first()
    if saved is None:
        text = f"there is no saved recipe {given!r} in this project"
        raise Invalid(text, errors=[FieldError("recipe", text)])
    return Recipe.model_validate(saved.document)
