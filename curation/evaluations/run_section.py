"""The evaluation's table on the page of its run."""

from django.urls import reverse

from curation.evaluations.figures import overall
from curation.evaluations.models import Evaluation
from curation.evaluations.tables import score_table
from curation.runs.models import Run

TEMPLATE = "evaluations/_run_section.html"


def evaluation_section(run: Run) -> dict[str, object]:
    evaluation = Evaluation.objects.filter(run=run).first()
    if evaluation is None:
        return {"table": None}
    url = reverse("evaluation-page", args=[run.project.slug, evaluation.pk])
    return {"table": score_table(overall(evaluation)), "evaluation": evaluation, "url": url}
