from pathlib import Path

from django.apps import AppConfig

FOLDER = Path(__file__).parent / "instructions"


class ScenariosConfig(AppConfig):
    name = "curation.scenarios"

    def ready(self) -> None:
        from curation.imports import row_kinds as imports
        from curation.projects.instructions import texts as instructions
        from curation.runs.kinds import register
        from curation.runs.pages.sections import register_section
        from curation.scenarios.author.kind import AUTHOR
        from curation.scenarios.bundles.import_rows import ScenarioKind
        from curation.scenarios.gate.kind import GATE
        from curation.scenarios.gate.run_section import TEMPLATE, gate_section

        instructions.register("author", FOLDER / "author.txt", "Author: write a scenario")
        imports.register(ScenarioKind())
        register(AUTHOR)
        register(GATE)
        register_section({AUTHOR.name, GATE.name}, TEMPLATE, gate_section)
