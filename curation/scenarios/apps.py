from pathlib import Path

from django.apps import AppConfig
from django.db.models.signals import post_migrate

FOLDER = Path(__file__).parent / "instructions"


class ScenariosConfig(AppConfig):
    name = "curation.scenarios"

    def ready(self) -> None:
        from curation.imports import row_kinds as imports
        from curation.projects.instructions import texts as instructions
        from curation.runs import kinds
        from curation.scenarios.author.kind import AuthorRun
        from curation.scenarios.bundles.import_rows import ScenarioKind
        from curation.scenarios.copies import link_all
        from curation.scenarios.gate.kind import GateRun

        instructions.register("author", FOLDER / "author.txt", "Author: write a scenario")
        imports.register(ScenarioKind())
        kinds.register(AuthorRun(), GateRun())
        post_migrate.connect(link_all, sender=self, dispatch_uid="scenarios.copies")
