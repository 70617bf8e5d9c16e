from django.urls import path

from curation.exports.pages import views
from curation.exports.provenance import views as provenance
from curation.exports.rounds import views as rounds

EXPORTS = "p/<slug:slug>/exports/"

urlpatterns = [
    path(EXPORTS, views.export_list, name="export-list"),
    path(f"{EXPORTS}new/", views.export_new, name="export-new"),
    path(f"{EXPORTS}formats/", views.export_formats, name="export-formats"),
    path(f"{EXPORTS}preview/", views.export_preview, name="export-preview"),
    path(f"{EXPORTS}recipes/<str:name>/delete/", views.recipe_delete, name="recipe-delete"),
    path(f"{EXPORTS}<str:pk>/", views.export_page, name="export-page"),
    path(f"{EXPORTS}<str:pk>/progress/", views.export_progress, name="export-progress"),
    path(f"{EXPORTS}<str:pk>/compare/", views.export_compare, name="export-compare"),
    path(f"{EXPORTS}<str:pk>/duplicates/", views.export_duplicates, name="export-duplicates"),
    path(f"{EXPORTS}<str:pk>/contaminated/", views.export_contaminated, name="export-contaminated"),
    path(f"{EXPORTS}<str:pk>/keep/", views.export_keep, name="export-keep"),
    path(f"{EXPORTS}<str:pk>/push/", views.export_push, name="export-push"),
    path(f"{EXPORTS}<str:pk>/rows/", provenance.export_rows, name="export-rows"),
    path(f"{EXPORTS}<str:pk>/rows/<str:sha256>/", provenance.export_row, name="export-row"),
    path("p/<slug:slug>/rounds/", rounds.round_list, name="round-list"),
    path("p/<slug:slug>/rounds/start/", rounds.round_start, name="round-start"),
    path("p/<slug:slug>/rounds/<int:pk>/export/", rounds.round_export, name="round-export"),
    path("p/<slug:slug>/calls/", provenance.call_list, name="call-list"),
    path("p/<slug:slug>/calls/<str:pk>/exports/", provenance.call_exports, name="call-exports"),
]
