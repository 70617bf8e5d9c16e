from django.apps import AppConfig


class ExportsConfig(AppConfig):
    name = "curation.exports"

    def ready(self) -> None:
        from curation.exports.hub.kind import PushRun, PushTasksRun
        from curation.exports.kinds import ExportRun
        from curation.runs.kinds import register

        register(ExportRun(), PushRun(), PushTasksRun())
