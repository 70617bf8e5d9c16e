from pathlib import Path

from django.apps import AppConfig

FOLDER = Path(__file__).parent / "instructions"


class TrajectoriesConfig(AppConfig):
    name = "curation.trajectories"

    def ready(self) -> None:
        from curation.projects.instructions.texts import register
        from curation.runs.pages.sections import register_section
        from curation.trajectories.kinds import PAIRS, REPLAY, ROLLOUT, register_kinds
        from curation.trajectories.pages import run_section

        register("operator", FOLDER / "operator.txt", "Operator: work in a terminal")
        register_kinds()
        register_section({ROLLOUT.name}, run_section.ROLLOUT, run_section.rollout_section)
        register_section({REPLAY.name}, run_section.REPLAY, run_section.replay_section)
        register_section({PAIRS.name}, run_section.PAIRS, run_section.pairs_section)
