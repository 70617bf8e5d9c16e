"""Addresses of the prompts pages; `urls.py` takes them in."""

from django.urls import path

from curation.duels import views_prompts

prompt_urlpatterns = [
    path("p/<slug:slug>/prompts/", views_prompts.prompt_list, name="prompt-list"),
]
