from django.apps import AppConfig


class ReviewConfig(AppConfig):
    name = "curation.review"

    def ready(self) -> None:
        from curation.review import removal  # noqa: F401 - registers what rests on what
