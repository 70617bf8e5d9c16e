"""Addresses of the scenarios pages."""

from django.urls import URLPattern, path

from curation.scenarios import views, views_write

SCENARIOS = "p/<slug:slug>/scenarios/"
ONE = f"{SCENARIOS}<int:pk>/"

urlpatterns: list[URLPattern] = [
    path(SCENARIOS, views.scenario_list, name="scenario-list"),
    path(f"{SCENARIOS}coverage/", views.scenario_coverage, name="scenario-coverage"),
    path(f"{SCENARIOS}gate/", views_write.scenario_gate_all, name="scenario-gate-all"),
    path(f"{SCENARIOS}new/", views_write.scenario_new, name="scenario-new"),
    path(f"{SCENARIOS}part/<slug:part>/", views_write.scenario_part, name="scenario-part"),
    path(ONE, views.scenario_page, name="scenario-page"),
    path(f"{ONE}report/", views.scenario_report, name="scenario-report"),
    path(f"{ONE}edit/", views_write.scenario_edit, name="scenario-edit"),
    path(f"{ONE}gate/", views_write.scenario_gate, name="scenario-gate"),
    path(f"{ONE}delete/", views_write.scenario_delete, name="scenario-delete"),
]
