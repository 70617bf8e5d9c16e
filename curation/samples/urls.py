"""Addresses of the samples pages."""

from django.urls import path

from curation.samples import views

urlpatterns = [
    path("p/<slug:slug>/samples/", views.sample_list, name="sample-list"),
]
