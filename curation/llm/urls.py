"""Addresses of the llm pages. `model-test` and `model-served` belong to `curation.runs`, because they launch runs."""

from django.urls import path

from curation.llm.endpoints import views

MODELS = "p/<slug:slug>/models"

urlpatterns = [
    path(f"{MODELS}/", views.model_list, name="model-list"),
    path(f"{MODELS}/new/", views.model_new, name="model-new"),
    path(f"{MODELS}/<endpoint:name>/edit/", views.model_edit, name="model-edit"),
    path(f"{MODELS}/<endpoint:name>/delete/", views.model_delete, name="model-delete"),
]
