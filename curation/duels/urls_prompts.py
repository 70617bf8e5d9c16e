"""Addresses of the prompts pages; `urls.py` takes them in."""

from django.urls import path

from curation.duels import views_prompts

prompt_urlpatterns = [
    path("p/<slug:slug>/prompts/", views_prompts.prompt_list, name="prompt-list"),
    path("p/<slug:slug>/prompts/exclusions/", views_prompts.exclusion_list, name="exclusion-list"),
    path("p/<slug:slug>/prompts/exclusions/set/", views_prompts.exclusion_set, name="exclusion-set"),
    path("p/<slug:slug>/prompts/exclusions/remove/", views_prompts.exclusion_remove, name="exclusion-remove"),
    path("p/<slug:slug>/prompts/<str:pk>/", views_prompts.prompt_page, name="prompt-page"),
]
