"""Saved recipes: save, delete, find by name."""

from dataclasses import dataclass

from django.db import transaction

from curation.exports.models import SavedRecipe
from curation.exports.recipes.recipe import Recipe
from curation.projects.access import Access
from curation.projects.models import Project
from curation.web.problems import Invalid, NotFound


@dataclass(frozen=True, slots=True)
class Saved:
    row: SavedRecipe
    created: bool


def save_recipe(*, access: Access, name: str, recipe: Recipe) -> Saved:
    """Save the recipe under its name, replacing an earlier one of that name."""
    document = recipe.model_dump(mode="json")
    with transaction.atomic():
        row, created = SavedRecipe.objects.update_or_create(
            project=access.project, name=name, defaults={"document": document, "created_by": access.user}
        )
        access.record("recipe.create" if created else "recipe.update", name, {"recipe": document})
    return Saved(row, created)


def delete_recipe(*, access: Access, name: str) -> None:
    """Delete a saved recipe. Exports made from it keep their own copy. Raises `NotFound`."""
    with transaction.atomic():
        deleted, _ = SavedRecipe.objects.filter(project=access.project, name=name).delete()
        if not deleted:
            raise NotFound(f"There is no saved recipe {name!r}.")
        access.record("recipe.delete", name)


def recipe_named(project: Project, name: str) -> SavedRecipe:
    """Return the saved recipe. Raises `NotFound`."""
    saved = SavedRecipe.objects.filter(project=project, name=name).first()
    if saved is None:
        raise NotFound(f"There is no saved recipe {name!r}.")
    return saved


def resolve_recipe(project: Project, given: Recipe | str) -> Recipe:
    """Return the recipe itself, or the saved one of that name. Raises `Invalid`."""
    if isinstance(given, Recipe):
        return given
    saved = SavedRecipe.objects.filter(project=project, name=given).first()
    if saved is None:
        raise Invalid.at("recipe", f"there is no saved recipe {given!r} in this project")
    return Recipe.model_validate(saved.document)
