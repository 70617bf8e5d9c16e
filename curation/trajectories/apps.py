from pathlib import Path

from django.apps import AppConfig

FOLDER = Path(__file__).parent / "instructions"


class TrajectoriesConfig(AppConfig):
    name = "curation.trajectories"

    def ready(self) -> None:
        from curation.projects.instructions import register
        from curation.trajectories.kinds import register_kinds

        register("operator", FOLDER / "operator.txt", "Operator: work in a terminal")
        register_kinds()
