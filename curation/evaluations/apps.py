from django.apps import AppConfig


class EvaluationsConfig(AppConfig):
    name = "curation.evaluations"

    def ready(self) -> None:
        from curation.evaluations.check import CONTAMINATION
        from curation.evaluations.import_rows import EvalRowKind
        from curation.evaluations.kinds import EVALUATE
        from curation.evaluations.run_section import TEMPLATE, evaluation_section
        from curation.evaluations.split_export import SPLIT
        from curation.imports.kinds import register as register_import
        from curation.runs.kinds import register
        from curation.runs.pages import register_section

        register_import(EvalRowKind())
        for kind in (EVALUATE, SPLIT, CONTAMINATION):
            register(kind)
        register_section({EVALUATE.name}, TEMPLATE, evaluation_section)
