"""Addresses of the prompts pages; `urls.py` takes them in."""

from django.urls import path

from curation.duels.prompts import views

prompt_urlpatterns = [
    path("p/<slug:slug>/prompts/", views.prompt_list, name="prompt-list"),
    path("p/<slug:slug>/prompts/exclusions/", views.exclusion_list, name="exclusion-list"),
    path("p/<slug:slug>/prompts/exclusions/set/", views.exclusion_set, name="exclusion-set"),
    path("p/<slug:slug>/prompts/exclusions/remove/", views.exclusion_remove, name="exclusion-remove"),
    path("p/<slug:slug>/prompts/<str:pk>/", views.prompt_page, name="prompt-page"),
]
