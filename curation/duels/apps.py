from pathlib import Path

from django.apps import AppConfig

FOLDER = Path(__file__).parent / "instructions"


class DuelsConfig(AppConfig):
    name = "curation.duels"

    def ready(self) -> None:
        from curation.duels.imports.kinds import register_imports
        from curation.duels.kinds import register_kinds
        from curation.duels.report.report import REPORTED_KINDS
        from curation.duels.report.run_section import TEMPLATE, report_section
        from curation.projects.instructions.texts import register
        from curation.runs.pages.sections import register_section

        register("king", FOLDER / "king.txt", "King: answer blind")
        register("challenger", FOLDER / "challenger.txt", "Challenger: answer with the hidden record")
        register("judge", FOLDER / "judge.txt", "Judge: compare two answers")
        register_kinds()
        register_imports()
        register_section(REPORTED_KINDS, TEMPLATE, report_section)
