from django.apps import AppConfig
from django.core.checks import Tags, register
from django.db.models.signals import post_migrate


class SamplesConfig(AppConfig):
    name = "curation.samples"

    def ready(self) -> None:
        from curation.samples import blind  # noqa: F401 - says from whom the results of runs are hidden
        from curation.samples.list.search_index import check_search_index, create_missing

        post_migrate.connect(create_missing, sender=self, dispatch_uid="samples.search_index")
        register(check_search_index, Tags.database)
