"""Addresses of the llm pages."""

from django.urls import path

from curation.llm import views

urlpatterns = [
    path("p/<slug:slug>/models/", views.model_list, name="model-list"),
]
