from django.urls import URLPattern, path

from curation.scenarios.editor import views as editor_views
from curation.scenarios.pages import list_page, views

SCENARIOS = "p/<slug:slug>/scenarios/"
ONE = f"{SCENARIOS}<int:pk>/"

urlpatterns: list[URLPattern] = [
    path(SCENARIOS, list_page.scenario_list, name="scenario-list"),
    path(f"{SCENARIOS}coverage/", views.scenario_coverage, name="scenario-coverage"),
    path(f"{SCENARIOS}gate/", editor_views.scenario_gate_all, name="scenario-gate-all"),
    path(f"{SCENARIOS}new/", editor_views.scenario_new, name="scenario-new"),
    path(f"{SCENARIOS}part/<slug:part>/", editor_views.scenario_part, name="scenario-part"),
    path(ONE, views.scenario_page, name="scenario-page"),
    path(f"{ONE}report/", views.scenario_report, name="scenario-report"),
    path(f"{ONE}edit/", editor_views.scenario_edit, name="scenario-edit"),
    path(f"{ONE}gate/", editor_views.scenario_gate, name="scenario-gate"),
    path(f"{ONE}axes/", editor_views.scenario_clear_axes, name="scenario-clear-axes"),
    path(f"{ONE}delete/", editor_views.scenario_delete, name="scenario-delete"),
]
