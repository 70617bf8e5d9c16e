"""Addresses of the exports pages."""

from django.urls import path

from curation.exports.pages import views

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
]
