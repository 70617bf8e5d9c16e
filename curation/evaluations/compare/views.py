from collections.abc import Sequence

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from curation.evaluations.compare.baseline import pin_baseline, unpin_baseline
from curation.evaluations.compare.compare import MetricChange, ModelComparison, compare
from curation.evaluations.compare.context import compare_page, leader_lines
from curation.evaluations.compare.leaderboard import leaderboard
from curation.evaluations.live.charts import SHOWN, lines_over_episodes
from curation.evaluations.metrics import SHARE
from curation.evaluations.models import EvaluatedModel, EvaluatedModelQuerySet, EvaluationKind, Split
from curation.evaluations.screen.charts import labelled
from curation.evaluations.tables import TABLE_OF_KIND
from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.samples.blind import refuse_pending
from curation.web.charts import Figure, axis, color, error_bars, figure, vertical_line
from curation.web.ids import find
from curation.web.problems import Invalid


@project_page(Scope.READ, "GET")
def leaderboard_page(request: HttpRequest, access: Access) -> HttpResponse:
    board = leaderboard(access, request.GET.get("split"), kind=_kind(request.GET.get("kind")))
    context = {
        "board": board,
        "lines": leader_lines(board),
        "columns": TABLE_OF_KIND[board.kind][0],
        "pinned": board.split is not None and board.split.baseline_of(board.kind) is not None,
        "splits": Split.objects.of(access.project).filter(evaluations__isnull=False).distinct().order_by("-id"),
        "may_run": access.may(Scope.RUN),
        "api_path": f"/api/v1/projects/{access.project.slug}/leaderboard",
    }
    return render(request, "evaluations/compare/leaderboard.html", context)


@project_page(Scope.READ, "GET")
def evaluation_compare(request: HttpRequest, access: Access) -> HttpResponse:
    """`?before=` and `?after=` are ids of evaluated models."""
    found = _compared(request, access)
    before, after = found.before, found.after
    path = f"/api/v1/evaluations/{before.evaluation_id}/compare/{after.evaluation_id}"
    query = f"?model_before={before.name}&model_after={after.name}"
    context = {
        "page": compare_page(access.project.slug, found),
        "live": before.evaluation.kind == EvaluationKind.LIVE,
        "chart_url": f"{reverse('compare-chart', args=[access.project.slug])}?before={before.pk}&after={after.pk}",
        "swap_url": f"{request.path}?before={after.pk}&after={before.pk}",
        "files": [(name, f"{path}/comparison.{name}{query}") for name in ("md", "csv", "json")],
        "next_steps": _next_steps(access.project.slug, after),
        "api_path": f"{path}{query}",
    }
    return render(request, "evaluations/compare/compare.html", context)


def _next_steps(slug: str, after: EvaluatedModel) -> list[tuple[str, str]]:
    evaluation = after.evaluation
    board = reverse("leaderboard", args=[slug])
    if evaluation.split_id is not None:
        board += f"?split={evaluation.split_id}&kind={evaluation.kind}"
    return [("Leaderboard", board), ("Write an experiment", reverse("experiment-list", args=[slug]))]


@project_page(Scope.READ, "GET")
def compare_chart(request: HttpRequest, access: Access) -> HttpResponse:
    """`?shown=` is change (the default), or of live episodes reward or steps."""
    found, shown = _compared(request, access), request.GET.get("shown", "")
    live = found.before.evaluation.kind == EvaluationKind.LIVE
    return JsonResponse(episodes_chart(found, shown) if live and shown in SHOWN else change_chart(found))


@project_page(Scope.RUN, "POST")
def baseline_pin(request: HttpRequest, access: Access) -> HttpResponse:
    model = find(_models(access), request.POST.get("model", ""), "model")
    split = pin_baseline(access=access, model=model)
    messages.success(request, f"{model.name} is the baseline of {split.name}.")
    board = reverse("leaderboard", args=[access.project.slug])
    return redirect(f"{board}?split={split.pk}&kind={model.evaluation.kind}")


@project_page(Scope.RUN, "POST")
def baseline_unpin(request: HttpRequest, access: Access) -> HttpResponse:
    split = find(Split.objects.of(access.project), request.POST.get("split", ""), "split")
    kind = _kind(request.POST.get("kind")) or EvaluationKind.STATIC
    unpin_baseline(access=access, split=split, kind=kind)
    messages.success(request, f"{split.name} has no baseline any more.")
    return redirect(f"{reverse('leaderboard', args=[access.project.slug])}?split={split.pk}&kind={kind}")


def _kind(given: str | None) -> EvaluationKind | None:
    """Raises `Invalid` for a kind that does not exist."""
    if given and given not in EvaluationKind.values:
        raise Invalid(f"There is no kind {given!r} of evaluations; there are {', '.join(EvaluationKind.values)}.")
    return EvaluationKind(given) if given else None


def _compared(request: HttpRequest, access: Access) -> ModelComparison:
    before, after = (find(_models(access), request.GET.get(name, ""), "model") for name in ("before", "after"))
    if before.pk == after.pk:
        raise Invalid("A model cannot be compared with itself; choose two.")
    for model in (before, after):
        refuse_pending(access, model.evaluation.samples(), f"evaluation {model.evaluation_id}")
    return compare(before=before, after=after)


def _models(access: Access) -> EvaluatedModelQuerySet:
    rows = EvaluatedModel.objects.filter(evaluation__project=access.project)
    return rows.select_related("evaluation__run", "evaluation__split__project")


def change_chart(found: ModelComparison) -> Figure:
    """The change of each rate in percentage points with its 95 % interval, for all rows and for each tier."""
    groups = [(f"all {found.scale.noun}s", found.metrics)]
    groups += [(tier.tier or "no tier", tier.metrics) for tier in found.tiers]
    incomplete = found.missing > 0
    return figure(
        [
            _points(position, labelled(name, incomplete=incomplete), metrics)
            for position, (name, metrics) in enumerate(groups)
        ],
        xaxis=axis("percentage points, after − before", zeroline=True),
        yaxis={"type": "category", "autorange": "reversed"},
        shapes=[vertical_line(0)],
    )


def episodes_chart(found: ModelComparison, shown: str) -> Figure:
    """Reward or steps of both models over the episodes that both played, in the order of the tasks."""
    column, title = SHOWN.get(shown, SHOWN["reward"])
    sides = {"before": [pair.before for pair in found.pairs], "after": [pair.after for pair in found.pairs]}
    names = {"before": found.before.name, "after": found.after.name}
    lines = {
        labelled(f"{names[side]} ({side})", incomplete=found.missing > 0): [
            (pair.number, f"{pair.task} {pair.tier}".strip(), result.values[column])
            for pair, result in zip(found.pairs, results, strict=True)
            if column in result.values
        ]
        for side, results in sides.items()
    }
    return lines_over_episodes(lines, title)


def _points(position: int, name: str, metrics: Sequence[MetricChange]) -> Figure:
    rates = [change for change in metrics if change.metric.unit is SHARE]
    changes = [100 * rate.change.delta for rate in rates]
    intervals = [(100 * rate.change.interval.low, 100 * rate.change.interval.high) for rate in rates]
    token = f"chart-{position % 5 + 1}"
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": changes,
        "y": [rate.metric.label for rate in rates],
        "marker": {"size": 6 if position else 9, "color": color(token)},
        "error_x": error_bars(changes, intervals, token=token),
        # The points of two groups would cover each other; a click on the legend shows a tier.
        "visible": "legendonly" if position else True,
        "text": [SHARE.change(rate.change.delta) for rate in rates],
        "hovertemplate": "%{text}<extra>" + name + "</extra>",
    }
