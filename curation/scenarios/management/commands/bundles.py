"""`manage.py bundles import DIR|FILE` and `bundles export DIR`: bundles as files in a repository."""

from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError
from django.http import QueryDict

from curation.imports.sources.rows import SourceError
from curation.projects.management.options import project_named, user_named
from curation.projects.models import Project
from curation.scenarios.bundles.files import BundleFile, files_of, read_bundles, write_folder
from curation.scenarios.bundles.harbor import Document, parse_scenario
from curation.scenarios.bundles.harbor_dataset import HarborDataset
from curation.scenarios.bundles.save import upsert_bundles
from curation.scenarios.filters import ScenarioFilter
from curation.scenarios.models import Scenario
from curation.scenarios.taxonomy.axes import Taxonomy, taxonomy_of
from curation.web.problems import Problem
from curation.web.text.figures import counted
from sandbox.harbor.export import IMAGE


class Command(BaseCommand):
    help = "Import scenarios from a folder, an archive or a file of bundles, or export them as a folder."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        importing = verbs.add_parser("import", help="a folder, archive or file of Harbor tasks or bundles")
        importing.add_argument("source", type=Path, help="the folder or file")
        importing.add_argument("--strict", action="store_true", help="import nothing if one is refused")
        importing.add_argument("--user", default="", help="the user in the audit log")
        exporting = verbs.add_parser("export", help="one .json file per scenario into a folder")
        exporting.add_argument("folder", type=Path, help="the folder; it is made if it is missing")
        exporting.add_argument(
            "--filter", default="", help="as in the URL of the list: status=admitted&axes=task=cleanup"
        )
        exporting.add_argument(
            "--as", choices=["bundles", "harbor"], default="bundles", help="harbor: a data set of tasks"
        )
        exporting.add_argument("--image", default=IMAGE, help="what the machines of bundles as Harbor tasks begin from")
        for verb in (importing, exporting):
            verb.add_argument("--project", required=True, help="the project's slug")

    def handle(self, *args: object, **options: object) -> None:
        project = project_named(str(options["project"]))
        try:
            if options["verb"] == "export":
                rows = ScenarioFilter.from_query(QueryDict(str(options["filter"]))).apply(Scenario.objects.of(project))
                folder = Path(str(options["folder"]))
                if options["as"] == "harbor":
                    self._export_harbor(HarborDataset(project, rows, str(options["image"])), folder)
                else:
                    self.stdout.write(f"{counted(write_folder(files_of(rows), folder), 'bundle')} in {folder}")
            else:
                self._import(project, Path(str(options["source"])), bool(options["strict"]), str(options["user"]))
        except (Problem, SourceError) as refused:
            raise CommandError(getattr(refused, "detail", str(refused))) from None

    def _export_harbor(self, dataset: HarborDataset, folder: Path) -> None:
        self.stdout.write(f"{counted(dataset.write(folder), 'task')} in {folder}")
        for name, reason in dataset.skipped.items():
            self.stderr.write(f"{name}: left out: {reason}")

    def _import(self, project: Project, source: Path, strict: bool, user_name: str) -> None:
        user = user_named(user_name)
        taxonomy = taxonomy_of(project.settings)
        bundles, bad = [], 0
        for file in read_bundles(source):
            read = self._read(file, taxonomy)
            bad += read is None
            bundles += [read] if read else []
        if bad and strict:
            invalid = f"{bad} of {counted(bad + len(bundles), 'bundle')} {'is' if bad == 1 else 'are'} invalid"
            raise CommandError(f"Nothing was imported, because {invalid}.")
        found = upsert_bundles(project=project, bundles=bundles, user=user)
        for name in found["updated"]:
            self.stdout.write(f"{name}: changed; it is a draft again")
        counts = [f"{len(names)} {what}" for what, names in found.items()]
        self.stdout.write(", ".join([*counts, f"{bad} refused"]))
        if bad:
            raise CommandError(f"Refused {bad} of {counted(bad + len(bundles), 'bundle')}.")
        if not bundles:
            raise CommandError(f"There is no bundle in {source}.")

    def _read(self, file: BundleFile, taxonomy: Taxonomy) -> Document | None:
        """The bundle, or None after printing its errors."""
        if file.refusal:
            self.stderr.write(f"{file.path}: {file.refusal}")
            return None
        try:
            return parse_scenario(file.document, taxonomy=taxonomy)
        except Problem as refused:
            for error in refused.errors:
                self.stderr.write(f"{file.path}: {error}")
            return None
