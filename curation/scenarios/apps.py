from pathlib import Path

from django.apps import AppConfig

FOLDER = Path(__file__).parent / "instructions"


class ScenariosConfig(AppConfig):
    name = "curation.scenarios"

    def ready(self) -> None:
        from curation.imports import kinds as imports
        from curation.projects import instructions
        from curation.runs.kinds import register
        from curation.runs.pages import register_section
        from curation.scenarios.author_kind import AUTHOR
        from curation.scenarios.gate_kind import GATE
        from curation.scenarios.gate_section import TEMPLATE, gate_section
        from curation.scenarios.import_kind import ScenarioKind

        instructions.register("author", FOLDER / "author.txt", "Author: write a scenario")
        imports.register(ScenarioKind())
        register(AUTHOR)
        register(GATE)
        register_section({AUTHOR.name, GATE.name}, TEMPLATE, gate_section)
