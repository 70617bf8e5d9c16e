from django.apps import AppConfig


class SamplesConfig(AppConfig):
    name = "curation.samples"

    def ready(self) -> None:
        from curation.samples import blind  # noqa: F401 - says from whom the results of runs are hidden
        from curation.samples.list.search_index import SEARCH_INDEX

        SEARCH_INDEX.connect(self)
