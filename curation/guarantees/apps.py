from django.apps import AppConfig


class GuaranteesConfig(AppConfig):
    name = "curation.guarantees"
