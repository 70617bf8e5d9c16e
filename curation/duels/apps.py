from pathlib import Path

from django.apps import AppConfig

FOLDER = Path(__file__).parent / "instructions"


class DuelsConfig(AppConfig):
    name = "curation.duels"

    def ready(self) -> None:
        from curation.duels.cascade.kind import CascadeRun
        from curation.duels.imports.records import PullRequestKind
        from curation.duels.imports.turns import TurnKind
        from curation.duels.kinds import ChallengerRun, DuelRun, JudgeRun, KingRun, PromptsRun, RescoreRun
        from curation.duels.score.counting import CountingScores, RubricWeights
        from curation.duels.trials.kind import TrialRun
        from curation.imports import row_kinds
        from curation.projects.instructions.texts import register
        from curation.projects.settings import dependents
        from curation.runs import kinds
        from judging.panel.rubric import read_rubric

        register("king", FOLDER / "king.txt", "King: answer blind")
        register("challenger", FOLDER / "challenger.txt", "Challenger: answer with the hidden record")
        register("leak_reader", FOLDER / "leak_reader.txt", "Leak reader: find what only the record says")
        register("judge", FOLDER / "judge.txt", "Judge: compare two answers")
        register("rubric", FOLDER / "rubric.txt", "Rubric: the dimensions of a comparison", check=read_rubric)
        dependents.register(CountingScores())
        dependents.register(RubricWeights())
        kinds.register(PromptsRun(), DuelRun(), KingRun(), ChallengerRun(), JudgeRun(), RescoreRun())
        kinds.register(CascadeRun(), TrialRun())
        row_kinds.register(TurnKind())
        row_kinds.register(PullRequestKind())
