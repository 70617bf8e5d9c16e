from pathlib import Path

from django.apps import AppConfig

FOLDER = Path(__file__).parent / "instructions"


class EvaluationsConfig(AppConfig):
    name = "curation.evaluations"

    def ready(self) -> None:
        from curation.evaluations.contamination.kind import ContaminationRun
        from curation.evaluations.kinds import EvaluateRun
        from curation.evaluations.splits import forms  # noqa: F401 - registers splits as held-out sets
        from curation.evaluations.splits.export_kind import SplitRun
        from curation.evaluations.splits.import_rows import EvalRowKind
        from curation.evaluations.uplift.kind import UpliftRun
        from curation.imports.row_kinds import register as register_import
        from curation.projects.instructions.texts import register as register_instructions
        from curation.runs.kinds import register

        register_instructions("live", FOLDER / "live.txt", "Live episodes: act by commands")
        placeholders = ("{task}", "{output}", "{history}")
        register_instructions(
            "live_turn", FOLDER / "live_turn.txt", "Live episodes: one turn", placeholders=placeholders
        )
        title = "Live episodes: act by the environment's schema"
        register_instructions("live_action", FOLDER / "live_action.txt", title)
        register_instructions(
            "live_action_turn",
            FOLDER / "live_action_turn.txt",
            "Live episodes: one turn by the environment's schema",
            placeholders=placeholders,
        )
        register_import(EvalRowKind())
        register(EvaluateRun(), SplitRun(), ContaminationRun(), UpliftRun())
