from pathlib import Path

from django.apps import AppConfig

FOLDER = Path(__file__).parent / "instructions"


class EvaluationsConfig(AppConfig):
    name = "curation.evaluations"

    def ready(self) -> None:
        from curation.evaluations.check import CONTAMINATION
        from curation.evaluations.import_rows import EvalRowKind
        from curation.evaluations.kinds import EVALUATE
        from curation.evaluations.run_section import TEMPLATE, evaluation_section
        from curation.evaluations.split_export import SPLIT
        from curation.imports.kinds import register as register_import
        from curation.projects.instructions import register as register_instructions
        from curation.runs.kinds import register
        from curation.runs.pages import register_section

        register_instructions("live", FOLDER / "live.txt", "Live episodes: act by commands")
        placeholders = ("{task}", "{output}", "{history}")
        register_instructions(
            "live_turn", FOLDER / "live_turn.txt", "Live episodes: one turn", placeholders=placeholders
        )
        register_import(EvalRowKind())
        for kind in (EVALUATE, SPLIT, CONTAMINATION):
            register(kind)
        register_section({EVALUATE.name}, TEMPLATE, evaluation_section)
