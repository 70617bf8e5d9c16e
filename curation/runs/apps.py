from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "curation.runs"

    def ready(self) -> None:
        from curation.runs.endpoint_check.kind import TestRun
        from curation.runs.endpoint_check.list_models import ServedRun
        from curation.runs.kinds import register
        from curation.runs.workers import housekeeping, presence  # noqa: F401 - connect their signals

        register(TestRun())
        register(ServedRun())
