from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    name = "curation.webhooks"
