from django.urls import URLPattern, path, re_path

from curation.runs.pages import views

RUNS = "p/<slug:slug>/runs/"

urlpatterns: list[URLPattern] = [
    path("p/<slug:slug>/archive/<slug:noun>/<str:pk>/", views.row_archive, name="row-archive"),
    path("p/<slug:slug>/delete/<slug:noun>/<str:pk>/", views.row_delete, name="row-delete"),
    path(RUNS, views.run_list, name="run-list"),
    path(f"{RUNS}new/", views.run_new, name="run-new"),
    path(f"{RUNS}new/estimate/", views.run_estimate, name="run-estimate"),
    path(f"{RUNS}<str:pk>/", views.run_page, name="run-page"),
    path(f"{RUNS}<str:pk>/live/", views.run_live, name="run-live"),
    path(f"{RUNS}<str:pk>/items/", views.run_items, name="run-items"),
    path(f"{RUNS}<str:pk>/calls/", views.run_calls, name="run-calls"),
    re_path(
        r"^p/(?P<slug>[-\w]+)/runs/(?P<pk>\d+)/(?P<verb>cancel|resume|retry-failed)/$",
        views.run_control,
        name="run-control",
    ),
]
