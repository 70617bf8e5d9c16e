from django.apps import AppConfig


class ScenariosConfig(AppConfig):
    name = "curation.scenarios"

    def ready(self) -> None:
        from curation.runs.kinds import register
        from curation.scenarios.gate_kind import GATE

        register(GATE)
