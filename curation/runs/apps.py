from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "curation.runs"

    def ready(self) -> None:
        from curation.runs.endpoint_test import register_kind

        from curation.runs import presence  # noqa: F401 - connects its signals

        register_kind()
