from django.apps import AppConfig


class LlmConfig(AppConfig):
    name = "curation.llm"

    def ready(self) -> None:
        from curation.llm.endpoints.named import NamedEndpoints
        from curation.projects.settings.dependents import register

        register(NamedEndpoints())
