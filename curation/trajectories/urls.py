"""Addresses of the trajectories pages."""

from django.urls import URLPattern, path

from curation.trajectories import views, views_parts

TRAJECTORIES = "p/<slug:slug>/trajectories/"
ONE = f"{TRAJECTORIES}<str:pk>/"

urlpatterns: list[URLPattern] = [
    path(TRAJECTORIES, views.trajectory_list, name="trajectory-list"),
    path("p/<slug:slug>/pairs/", views.pair_list, name="pair-list"),
    path(ONE, views.trajectory_page, name="trajectory-page"),
    path(f"{ONE}replay/", views.trajectory_replay, name="trajectory-replay"),
    path(f"{ONE}steps/", views_parts.trajectory_steps, name="trajectory-steps"),
    path(f"{ONE}turns/<int:turn>/", views_parts.trajectory_turn, name="trajectory-turn"),
    path(f"{ONE}find/", views_parts.trajectory_find, name="trajectory-find"),
    path(f"{ONE}compare/", views_parts.trajectory_compare, name="trajectory-compare"),
    path(f"{ONE}raw/", views_parts.trajectory_raw, name="trajectory-raw"),
    path(f"{ONE}exchange/", views_parts.trajectory_exchange, name="trajectory-exchange"),
    path(f"{ONE}exchange/raw/", views_parts.trajectory_exchange_raw, name="trajectory-exchange-raw"),
]
