from django.apps import AppConfig


class ImportsConfig(AppConfig):
    name = "curation.imports"

    def ready(self) -> None:
        from curation.imports.intake.pull import PullRun
        from curation.imports.kinds import ImportRun
        from curation.runs.kinds import register

        register(ImportRun(), PullRun())
