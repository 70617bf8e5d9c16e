"""The page of predictions, and the prediction on the page of a sample."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from curation.predictions.approval.charts import calibration_chart, importance_chart
from curation.predictions.approval.decisions import PredictParams, counts_of
from curation.predictions.approval.resource import FiguresOut, doubtful, newest_model, reasons_of
from curation.predictions.extra import missing_extra
from curation.predictions.models import Prediction
from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.review.pages.views import sample_of
from curation.runs.kinds import kind_of
from curation.samples.blind import look, refuse_undecided
from curation.samples.models import Sample, SampleStatus

SHOWN = 50


@project_page(Scope.READ, "GET", refuses=refuse_undecided)
def prediction_page(request: HttpRequest, access: Access) -> HttpResponse:
    project = access.project
    refuse_undecided(access, request.GET)
    model = newest_model(project)
    figures = FiguresOut.model_validate(model.figures) if model else None
    doubts = doubtful(project).select_related("sample__decided_by").order_by("doubt")
    counts = counts_of(project, PredictParams())
    # In the form of the queue's index, which finds one without reading those that have a prediction.
    unpredicted = {"status": SampleStatus.PENDING, "assigned__in": [False, True], "predicted_key__lt": 0}
    context = {
        "model": model,
        "figures": figures,
        "calibration": calibration_chart(figures.calibration) if figures else None,
        "importance": importance_chart(figures.importance) if figures else None,
        "doubts": [(one, reasons_of(one)) for one in doubts[:SHOWN]],
        "all_doubts": doubts.count(),
        "unpredicted": Sample.objects.of(project).filter(**unpredicted).exists() if model else False,
        "new_decisions": counts.approved + counts.others - model.decisions if model else 0,
        "refusal": missing_extra() or counts.refusal(),
        "launch_url": kind_of("predict").form_url(project) if access.may(Scope.RUN) else "",
        "api_path": f"/api/v1/projects/{project.slug}/approval-models",
    }
    return render(request, "predictions/page.html", context)


@project_page(Scope.READ, "GET")
def sample_prediction(request: HttpRequest, access: Access, pk: int) -> HttpResponse:
    sample = sample_of(access, pk)
    look(access, sample)
    found = Prediction.objects.filter(sample=sample).select_related("model").first()
    context = {"prediction": found, "reasons": reasons_of(found) if found else []}
    return render(request, "predictions/_prediction.html", context)
