"""Addresses of the runs pages."""

from django.urls import path

from curation.runs import views

urlpatterns = [
    path("p/<slug:slug>/runs/", views.run_list, name="run-list"),
    path("p/<slug:slug>/runs/new/", views.run_new, name="run-new"),
    path("p/<slug:slug>/runs/<str:pk>/", views.run_page, name="run-page"),
]
