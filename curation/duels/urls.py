"""Addresses of the duels pages."""

from django.urls import URLPattern, path

from curation.duels.pages import views
from curation.duels.prompts.urls import prompt_urlpatterns

urlpatterns: list[URLPattern] = [
    path("p/<slug:slug>/duels/", views.duel_list, name="duel-list"),
    path("p/<slug:slug>/duels/<str:pk>/", views.duel_page, name="duel-page"),
    *prompt_urlpatterns,
]
