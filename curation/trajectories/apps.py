from pathlib import Path

from django.apps import AppConfig

FOLDER = Path(__file__).parent / "instructions"


class TrajectoriesConfig(AppConfig):
    name = "curation.trajectories"

    def ready(self) -> None:
        from curation.projects.instructions.texts import register
        from curation.runs import kinds
        from curation.trajectories.kinds import (
            AttackRun,
            HarborRun,
            PairsRun,
            ProbeRun,
            ReplayRun,
            RolloutRun,
            ShortenRun,
        )
        from curation.trajectories.scorers.kind import ScoreRun

        register("operator", FOLDER / "operator.txt", "Operator: work in a terminal")
        register("operator_tools", FOLDER / "operator_tools.txt", "Operator: work in a terminal by tools")
        register("attacker", FOLDER / "attacker.txt", "Attacker: be rewarded without doing the task")
        register("attacker_harbor", FOLDER / "attacker_harbor.txt", "Attacker: be rewarded without doing a Harbor task")
        register("mender_harbor", FOLDER / "mender_harbor.txt", "Teacher: mend the tests of a Harbor task")
        register("solver_harbor", FOLDER / "solver_harbor.txt", "Solver: do a Harbor task honestly")
        register("scorer", FOLDER / "scorer.txt", "Scorer: score a session by criteria")
        kinds.register(RolloutRun(), AttackRun(), HarborRun(), ReplayRun(), ProbeRun(), ShortenRun(), PairsRun())
        kinds.register(ScoreRun())
