from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "curation.runs"

    def ready(self) -> None:
        from curation.runs.endpoint_check.kind import register_kind

        register_kind()
