"""The scenarios list: tabs by status, a select per axis, rows with their texts escaped."""

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from curation.projects.access import Access, opens, project_page
from curation.projects.models import Scope
from curation.scenarios.filters import ScenarioList
from curation.scenarios.models import Scenario, ScenarioStatus
from curation.scenarios.pages.measured import MeasuredOut, measured_of, refuse_measured, refuse_measured_query
from curation.scenarios.taxonomy.axes import taxonomy_of
from curation.web.lists.pages import chips, page_urls, tabs
from curation.web.problems import Problem
from curation.web.text.markup import visible, with_signs

# Fields without a control in the form; an axis has one unless its select shows another value.
WITHOUT_CONTROL = {"id", "name", "family", "authored_by", "run", "group", "axes"}


@project_page(Scope.READ, "GET", refuses_query=refuse_measured_query)
def scenario_list(request: HttpRequest, access: Access) -> HttpResponse:
    """The page of a URL. A filter that is refused becomes `problem`; the form shows its fields as they were sent."""
    given = request.GET
    url = reverse("scenario-list", args=[access.project.slug])
    api = f"/api/v1/projects/{access.project.slug}/scenarios"
    params, problem = ScenarioList(), None
    rows: list[Scenario] = []
    pages: dict[str, str | None] = {}
    try:
        params = ScenarioList.from_query(given)
        refuse_measured(access, params, params.order())
        page = params.page(params.rows(access.project))
        rows, pages = page.rows, page_urls(url, params, page.next_cursor)
    except Problem as refused:
        if refused.code == "unknown_parameter":
            raise  # no field of the form could show it; the list is shown without it
        problem = refused
    selects = _axis_selects(access, given.getlist("axes"))
    selected = [select["chosen"] for select in selects]
    conditions = chips(url, params)
    query = params.to_query()
    copies = Scenario.objects.of(access.project).copies_of(rows)
    measured = measured_of(access, rows)
    by_rate = opens(f"{url}?sort=kept_rate", access)
    context = {
        "list_url": url,
        "bundles_url": f"{api}/bundles.zip?{query}" if query else f"{api}/bundles.zip",
        "harbor_url": f"{api}/harbor.zip?{query}" if query else f"{api}/harbor.zip",
        "text": given.get("text", ""),
        "status": given.get("status", ""),
        "solved_by": given.get("solved_by", ""),
        "rate_url": params.url(url, sort="-kept_rate" if params.sort == "kept_rate" else "kept_rate", cursor=None)
        if by_rate
        else "",
        "solved_by_options": params.choices["solved_by"] if by_rate else (),
        "query": query,
        "tabs": tabs(url, params, "status", ScenarioStatus.choices),
        "axes": selects,
        "chips": conditions,
        "kept": tuple(chip for chip in conditions if chip.name in WITHOUT_CONTROL and chip.raw not in selected),
        "may_run": access.may(Scope.RUN),
        "rows": [_row(row, url, copies.get(row.pk, 0), measured[row.pk]) for row in rows],
        "drafts": any(row.status == ScenarioStatus.DRAFT for row in rows),
        "problem": problem,
    }
    status = problem.status if problem else 200
    return render(
        request, "scenarios/list.html", {"page": context, "api_path": params.url(api), **pages}, status=status
    )


def _row(row: Scenario, url: str, copies: int, measured: MeasuredOut) -> dict[str, object]:
    axes = ", ".join(f"{axis.replace('_', ' ')} {value}" for axis, value in row.axes.items())
    return {
        "scenario": row,
        "name": visible(row.name),
        "title": visible(row.title),
        "axes": with_signs(axes),
        "values": with_signs(", ".join(str(value) for value in row.axes.values())),
        "author": with_signs(row.authored_by),
        "reason": with_signs(row.reason),
        "copies": copies,
        "copies_url": f"{url}?group={row.group}",
        "measured": measured,
    }


def _axis_selects(access: Access, chosen: Sequence[str]) -> list[dict[str, object]]:
    """The select of each axis: its options are values of the filter, `task=cleanup`."""
    selects: list[dict[str, object]] = []
    for axis in taxonomy_of(access.project.settings).axes.values():
        mine = next((word for word in chosen if word.startswith(f"{axis.name}=")), "")
        options = {f"{axis.name}={value}": value for value in axis.values}
        if mine and mine not in options:
            options[mine] = mine.partition("=")[2]  # several values, or one that is no longer in the taxonomy
        selects.append({"label": axis.name.replace("_", " "), "options": tuple(options.items()), "chosen": mine})
    return selects
