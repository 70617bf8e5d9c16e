from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "curation.runs"

    def ready(self) -> None:
        from curation.runs import presence, tending  # noqa: F401 - connect their signals
        from curation.runs.endpoint_test import register_kind

        register_kind()
