"""`manage.py import`: import a file or an address, and wait for the end."""

import shutil
import tempfile
from argparse import ArgumentParser
from pathlib import Path

from django.conf import settings
from django.core.files import File
from django.core.management.base import BaseCommand, CommandError

from curation.imports.kinds import BAD_ROW, ImportParams
from curation.imports.pages.preview import recognised_kind
from curation.imports.row_kinds import import_kinds
from curation.imports.sources.stored import store_upload
from curation.projects.management.options import project_named, user_named, values_of
from curation.projects.models import Project
from curation.runs.follow import follow
from curation.runs.launch import launch
from curation.runs.models import Item, RunState
from curation.runs.pages.schemas import RunOut, run_out
from curation.web.problems import Problem


class Command(BaseCommand):
    help = "Import rows, wait for the end, and print the run as JSON. Rows that are refused are listed with the reason."

    def add_arguments(self, parser: ArgumentParser) -> None:
        kinds = ", ".join(kind.name for kind in import_kinds())
        parser.add_argument("source", help="A file, a folder, or an address: https://, hf:// or s3://.")
        parser.add_argument("--project", required=True, help="The project's slug.")
        parser.add_argument("--kind", default="", help=f"Kind of the rows: {kinds}. Without it, they are recognised.")
        parser.add_argument(
            "--option",
            action="append",
            default=[],
            metavar="KEY=VALUE",
            help="An option of the kind: count=100, mapping=NAME. A value may be JSON.",
        )
        parser.add_argument("--strict", action="store_true", help="Import all rows or none.")
        parser.add_argument("--user", default="", help="Who imports, for the audit log.")

    def handle(
        self, *, source: str, project: str, kind: str, option: list[str], strict: bool, user: str, **_: object
    ) -> None:
        found, actor = project_named(project), user_named(user)
        try:
            params = ImportParams.parse({"kind": kind, "options": values_of("--option", option), "strict": strict})
            if "://" in source:
                params.source = source
            else:
                params.upload = _store(found, Path(source))
            params.kind = recognised_kind(project=found, params=params)
            run = launch(project=found, kind="import", params=params.model_dump(), user=actor)
        except Problem as problem:
            raise CommandError(problem.detail) from None
        run = follow(run, self.stderr.write, inline=True)
        for row in Item.objects.filter(run=run, stage=BAD_ROW).order_by("id").iterator():
            self.stderr.write(f"{row.key}: {row.reason}")
        self.stdout.write(RunOut.model_validate(run_out(run)).model_dump_json(indent=2))
        if run.state != RunState.SUCCEEDED:
            raise CommandError(f"Run {run.pk} {run.state}: {run.error}")


def _store(project: Project, path: Path) -> str:
    """Store a file, or a folder as a ZIP archive."""
    with tempfile.TemporaryDirectory(dir=settings.FILE_UPLOAD_TEMP_DIR) as packed:
        try:
            if path.is_dir():
                path = Path(shutil.make_archive(f"{packed}/{path.resolve().name}", "zip", path))
            with path.open("rb") as file:
                return store_upload(project=project, file=File(file), name=path.name)
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror}") from None
