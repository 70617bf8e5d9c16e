from django.apps import AppConfig


class AssignmentsConfig(AppConfig):
    name = "curation.assignments"
