"""The evaluation's table on the page of its run."""

from django.urls import reverse

from curation.evaluations.live.figures import live_rows
from curation.evaluations.live.pages import live_table
from curation.evaluations.models import Evaluation, EvaluationKind
from curation.evaluations.screen.figures import overall
from curation.evaluations.screen.tables import score_table
from curation.runs.models import Run

TEMPLATE = "evaluations/screen/_run_section.html"


def evaluation_section(run: Run) -> dict[str, object]:
    evaluation = Evaluation.objects.filter(run=run).first()
    if evaluation is None:
        return {"table": None}
    if evaluation.kind == EvaluationKind.LIVE:
        return _live(run, evaluation)
    url = reverse("evaluation-page", args=[run.project.slug, evaluation.pk])
    return {"table": score_table(overall(evaluation)), "evaluation": evaluation, "url": url}


def _live(run: Run, evaluation: Evaluation) -> dict[str, object]:
    url = reverse("evaluation-page", args=[run.project.slug, evaluation.pk])
    return {"live_table": live_table("", live_rows(evaluation)), "evaluation": evaluation, "url": url}
