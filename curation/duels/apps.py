from django.apps import AppConfig


class DuelsConfig(AppConfig):
    name = "curation.duels"
