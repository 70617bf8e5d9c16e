"""Addresses of the trajectories pages."""

from django.urls import URLPattern, path

from curation.trajectories.pages import fragments, images, views

TRAJECTORIES = "p/<slug:slug>/trajectories/"
ONE = f"{TRAJECTORIES}<str:pk>/"

urlpatterns: list[URLPattern] = [
    path(TRAJECTORIES, views.trajectory_list, name="trajectory-list"),
    path("p/<slug:slug>/images/<str:digest>/", images.trajectory_image, name="trajectory-image"),
    path("p/<slug:slug>/pairs/", views.pair_list, name="pair-list"),
    path(ONE, views.trajectory_page, name="trajectory-page"),
    path(f"{ONE}replay/", views.trajectory_replay, name="trajectory-replay"),
    path(f"{ONE}steps/", fragments.trajectory_steps, name="trajectory-steps"),
    path(f"{ONE}turns/<int:turn>/", fragments.trajectory_turn, name="trajectory-turn"),
    path(f"{ONE}find/", fragments.trajectory_find, name="trajectory-find"),
    path(f"{ONE}compare/", fragments.trajectory_compare, name="trajectory-compare"),
    path(f"{ONE}raw/", fragments.trajectory_raw, name="trajectory-raw"),
    path(f"{ONE}exchange/", fragments.trajectory_exchange, name="trajectory-exchange"),
    path(f"{ONE}exchange/<int:turn>/", fragments.trajectory_exchange_turn, name="trajectory-exchange-turn"),
    path(f"{ONE}exchange/raw/", fragments.trajectory_exchange_raw, name="trajectory-exchange-raw"),
]
