"""Addresses of the projects pages."""

from django.urls import path

from curation.projects import views

urlpatterns = [
    path("", views.home, name="home"),
    path("p/<slug:slug>/settings/", views.settings, name="settings"),
]
