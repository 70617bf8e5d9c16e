from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.samples.blind import reviews_blind
from curation.scenarios.models import Family, GateReport, Scenario
from curation.scenarios.pages.harbor import task_view
from curation.scenarios.pages.measured import measured_by_model, measured_of
from curation.scenarios.pages.pages import report_view, scenario_view
from curation.scenarios.taxonomy.pages import coverage_page
from curation.web.ids import find
from curation.web.text.markup import with_signs

SHOWN_REPORTS, SHOWN_COPIES = 20, 20


@project_page(Scope.READ, "GET")
def scenario_coverage(request: HttpRequest, access: Access) -> HttpResponse:
    page = coverage_page(access, request.GET)
    return render(request, "scenarios/taxonomy/coverage.html", {"page": page, "api_path": page["api_path"]})


@project_page(Scope.READ, "GET")
def scenario_page(request: HttpRequest, access: Access, pk: int) -> HttpResponse:
    row = find(Scenario.objects.of(access.project).with_bundle(), str(pk), "scenario")
    return render(request, "scenarios/page.html", page_context(access, row))


def page_context(access: Access, row: Scenario) -> dict[str, object]:
    report = GateReport.objects.newest_of([row]).get(row.pk)
    others = Scenario.objects.of(access.project).filter(group=row.group).exclude(pk=row.pk).order_by("id")
    others = others[:SHOWN_COPIES] if row.group else others.none()
    return {
        "scenario": row,
        "view": task_view(row) if row.family == Family.HARBOR else scenario_view(row),
        "report": report_view(row, report) if report else None,
        "copies": [(with_signs(copy.name), copy) for copy in others],
        "copies_url": f"{reverse('scenario-list', args=[access.project.slug])}?group={row.group}",
        "measured": measured_of(access, [row])[row.pk],
        "operators": measured_by_model(access, row),
        "trajectories": row.trajectories.count(),
        "kept": None if reviews_blind(access) else row.trajectories.filter(keep=True).count(),
        "trajectories_url": f"{reverse('trajectory-list', args=[access.project.slug])}?scenario={row.pk}",
        "bundle_url": f"/api/v1/scenarios/{row.pk}/bundle.json",
        "may_run": access.may(Scope.RUN),
        "api_path": f"/api/v1/scenarios/{row.pk}",
    }


@project_page(Scope.READ, "GET")
def scenario_report(request: HttpRequest, access: Access, pk: int) -> HttpResponse:
    """The newest report, or the one that `report` names."""
    row = find(Scenario.objects.of(access.project), str(pk), "scenario")
    reports = GateReport.objects.filter(scenario=row).order_by("-id")
    newest = reports.values_list("pk", flat=True).first()
    report = find(reports, request.GET.get("report") or str(newest or ""), "gate report")
    context = {
        "scenario": row,
        "view": report_view(row, report),
        "reports": reports.defer("checks")[:SHOWN_REPORTS],
        "may_run": access.may(Scope.RUN),
        "api_path": f"/api/v1/scenarios/{row.pk}",
    }
    return render(request, "scenarios/gate/report.html", context)
