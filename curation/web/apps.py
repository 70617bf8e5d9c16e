from django.apps import AppConfig


class WebConfig(AppConfig):
    name = "curation.web"

    def ready(self) -> None:
        from curation.web import checks  # noqa: F401 - registers them
