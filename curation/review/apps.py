from django.apps import AppConfig


class ReviewConfig(AppConfig):
    name = "curation.review"

    def ready(self) -> None:
        from curation.imports import row_kinds
        from curation.review import removal  # noqa: F401 - registers what rests on what
        from curation.review.imports.kind import SampleKind

        row_kinds.register(SampleKind())
