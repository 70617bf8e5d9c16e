"""Addresses of the duels pages."""

from django.urls import URLPattern

from curation.duels.urls_prompts import prompt_urlpatterns

urlpatterns: list[URLPattern] = [*prompt_urlpatterns]
