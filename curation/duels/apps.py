from pathlib import Path

from django.apps import AppConfig

FOLDER = Path(__file__).parent / "instructions"


class DuelsConfig(AppConfig):
    name = "curation.duels"

    def ready(self) -> None:
        from curation.duels.import_kinds import register_imports
        from curation.duels.kinds import register_kinds
        from curation.projects.instructions import register

        register("king", FOLDER / "king.txt", "King: answer blind")
        register("challenger", FOLDER / "challenger.txt", "Challenger: answer with the hidden record")
        register("judge", FOLDER / "judge.txt", "Judge: compare two answers")
        register_kinds()
        register_imports()
