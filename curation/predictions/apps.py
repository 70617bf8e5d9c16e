from django.apps import AppConfig


class PredictionsConfig(AppConfig):
    name = "curation.predictions"

    def ready(self) -> None:
        from curation.predictions.approval.kind import PredictRun
        from curation.predictions.clusters.kind import ClusterRun
        from curation.runs.kinds import register

        register(PredictRun(), ClusterRun())
