"""The page of predictions, and the prediction on the page of a sample."""

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from curation.predictions.approval.decisions import PredictParams, counts_of
from curation.predictions.approval.resource import (
    CalibrationOut,
    FiguresOut,
    ImportanceOut,
    doubtful,
    newest_model,
    reasons_of,
)
from curation.predictions.extra import missing_extra
from curation.predictions.models import Prediction
from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.review.pages.views import sample_of
from curation.runs.kinds import kind_of
from curation.samples.blind import has_hidden, refuse_undecided, unblind
from curation.samples.models import Sample, SampleStatus
from curation.web.charts import Figure, axis, bars, color, error_bars, figure
from curation.web.text.figures import percent

FACTS_SHOWN = 12


def calibration_chart(bins: Sequence[CalibrationOut]) -> Figure:
    """The approved share against the predicted one, with 95 % intervals; on the line they agree."""
    shares = [one.share for one in bins]
    points = {
        "type": "scatter",
        "mode": "markers",
        "name": "approved, 95 %",
        "x": [one.predicted for one in bins],
        "y": shares,
        "marker": {"size": 7, "color": color("chart-1")},
        "error_y": error_bars(shares, [one.interval for one in bins], token="chart-1"),  # noqa: S106 - a colour
        "text": [f"{percent(one.share)} ({one.approved:,} of {one.n:,})" for one in bins],
        "hovertemplate": "%{text}<extra></extra>",
    }
    line = {
        "type": "scatter",
        "mode": "lines",
        "name": "as predicted",
        "x": [0, 1],
        "y": [0, 1],
        "line": {"width": 1, "dash": "dot", "color": color("text-2")},
        "hoverinfo": "skip",
    }
    ticks = {"range": [-0.02, 1.02], "tickformat": ".0%", "fixedrange": True}
    return figure([line, points], xaxis=axis("predicted approval", **ticks), yaxis=axis("approved", **ticks))


def importance_chart(importance: Sequence[ImportanceOut]) -> Figure:
    """The facts that move predictions most."""
    shown = list(importance[:FACTS_SHOWN])[::-1]
    trace = bars(
        "facts",
        [one.change for one in shown],
        [one.fact for one in shown],
        hover="%{x:.2f}",
        orientation="h",
        marker={"color": color("chart-1")},
    )
    return figure(
        [trace],
        xaxis=axis("mean change of the log-odds", rangemode="tozero", fixedrange=True),
        yaxis={"automargin": True, "fixedrange": True},
        showlegend=False,
    )


SHOWN = 50


@project_page(Scope.READ, "GET", closed_to=has_hidden)
def prediction_page(request: HttpRequest, access: Access) -> HttpResponse:
    project = access.project
    refuse_undecided(access)
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
    unblind(access, sample)
    found = Prediction.objects.filter(sample=sample).select_related("model").first()
    context = {"prediction": found, "reasons": reasons_of(found) if found else []}
    return render(request, "predictions/_prediction.html", context)
