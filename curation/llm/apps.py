from django.apps import AppConfig


class LlmConfig(AppConfig):
    name = "curation.llm"
