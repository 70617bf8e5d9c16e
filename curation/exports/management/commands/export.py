"""`manage.py export`: launch an export, wait for it, and write its files to a folder."""

import json
from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from curation.exports.files.download import DamagedFile, copy_checked
from curation.exports.models import Export
from curation.exports.recipes.recipe import Recipe, read_recipe
from curation.projects.management.options import project_named, user_named
from curation.runs.follow import follow
from curation.runs.launch import launch
from curation.runs.models import RunState
from curation.web.problems import Problem


class Command(BaseCommand):
    help = "Export a project's samples, wait for the end, and write the files to a folder; prints their names."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", required=True, help="The project's slug.")
        parser.add_argument("--recipe", required=True, help="A saved recipe's name, or a file with a recipe as JSON.")
        parser.add_argument(
            "--to", required=True, type=Path, metavar="FOLDER", help="The folder; it is made if it is missing."
        )
        parser.add_argument("--user", default="", help="Who exports, for the audit log.")

    def handle(self, *, project: str, recipe: str, to: Path, user: str, **options: object) -> None:
        found, actor = project_named(project), user_named(user)
        if to.is_dir() and any(to.iterdir()):
            raise CommandError(f"{to} is not empty.")
        to.mkdir(parents=True, exist_ok=True)
        try:
            run = launch(project=found, kind="export", params={"recipe": _recipe(recipe)}, user=actor)
        except Problem as problem:
            raise CommandError(problem.detail) from None
        run = follow(run, self.stderr.write, inline=True)
        if run.state != RunState.SUCCEEDED:
            raise CommandError(f"Run {run.pk} {run.state}: {run.error}")
        for file in Export.objects.get(run=run).files.all():
            (to / file.name).parent.mkdir(exist_ok=True)
            try:
                copy_checked(file, to / file.name)
            except DamagedFile as damaged:
                raise CommandError(str(damaged)) from None
            self.stdout.write(str(to / file.name))


def _recipe(given: str) -> Recipe | str:
    path = Path(given)
    if path.suffix != ".json":
        return given
    try:
        return read_recipe(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise CommandError(f"{path}: {error}") from None
