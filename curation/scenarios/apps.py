from django.apps import AppConfig


class ScenariosConfig(AppConfig):
    name = "curation.scenarios"

    def ready(self) -> None:
        from curation.imports import kinds as imports
        from curation.runs.kinds import register
        from curation.runs.pages import register_section
        from curation.scenarios.gate_kind import GATE
        from curation.scenarios.gate_section import TEMPLATE, gate_section
        from curation.scenarios.import_kind import ScenarioKind

        imports.register(ScenarioKind())
        register(GATE)
        register_section({GATE.name}, TEMPLATE, gate_section)
