from django.urls import URLPattern, path

from curation.dashboard.docs import views as docs
from curation.dashboard.overview import views

urlpatterns: list[URLPattern] = [
    path("p/<slug:slug>/", views.overview, name="overview"),
    path("p/<slug:slug>/start/<slug:name>/", views.start_sample, name="start-sample"),
    path("p/<slug:slug>/charts/scores.json", views.score_chart, name="score-chart"),
    path("p/<slug:slug>/charts/pace.json", views.pace_chart, name="pace-chart"),
    path("p/<slug:slug>/charts/outcomes.json", views.outcome_chart, name="outcome-chart"),
    path("p/<slug:slug>/charts/models.json", views.model_chart, name="model-chart"),
    path("p/<slug:slug>/system/", views.system, name="system"),
    path("overview/", views.project_overview, name="project-overview"),
    path("components/", views.components, name="components"),
    path("docs/", docs.docs, name="docs"),
    path("docs/img/<str:name>", docs.picture, name="docs-picture"),
    path("docs/notebooks/<str:name>", docs.notebook, name="docs-notebook"),
    path("docs/<slug:name>/", docs.document, name="document"),
]
