"""Addresses of the exports pages."""

from django.urls import path

from curation.exports import views

urlpatterns = [
    path("p/<slug:slug>/exports/", views.export_list, name="export-list"),
]
