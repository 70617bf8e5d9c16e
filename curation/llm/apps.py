from django.apps import AppConfig
from django.urls import register_converter


class LlmConfig(AppConfig):
    name = "curation.llm"

    def ready(self) -> None:
        from curation.llm.endpoints.check import EndpointName
        from curation.llm.endpoints.settings_endpoints import NamedEndpoints
        from curation.projects.settings.dependents import register

        register(NamedEndpoints())
        register_converter(EndpointName, "endpoint")
