"""Addresses of the evaluations pages."""

from django.urls import path

from curation.evaluations import views, views_compare, views_splits
from curation.evaluations.live import views as views_live

HERE = "p/<slug:slug>/evaluations/"
SPLITS = f"{HERE}splits/"

urlpatterns = [
    path(HERE, views.evaluation_list, name="evaluation-list"),
    path(f"{HERE}new/", views.evaluation_new, name="evaluation-new"),
    path(f"{HERE}new/live/", views_live.evaluation_new_live, name="evaluation-new-live"),
    path(f"{HERE}estimate/", views.evaluation_estimate, name="evaluation-estimate"),
    path(f"{HERE}line-up/", views.evaluation_line_up, name="evaluation-line-up"),
    path(f"{HERE}leaderboard/", views_compare.leaderboard_page, name="leaderboard"),
    path(f"{HERE}compare/", views_compare.evaluation_compare, name="evaluation-compare"),
    path(f"{HERE}compare/chart/", views_compare.compare_chart, name="compare-chart"),
    path(f"{HERE}baseline/pin/", views_compare.baseline_pin, name="baseline-pin"),
    path(f"{HERE}baseline/unpin/", views_compare.baseline_unpin, name="baseline-unpin"),
    path(SPLITS, views_splits.split_list, name="split-list"),
    path(f"{SPLITS}new/", views_splits.split_new, name="split-new"),
    path(f"{SPLITS}<str:pk>/", views_splits.split_page, name="split-page"),
    path(f"{SPLITS}<str:pk>/check/", views_splits.split_check, name="split-check"),
    path(f"{HERE}<str:pk>/", views.evaluation_page, name="evaluation-page"),
    path(f"{HERE}<str:pk>/live/", views.evaluation_live, name="evaluation-live"),
    path(f"{HERE}<str:pk>/chart/", views.evaluation_chart, name="evaluation-chart"),
    path(f"{HERE}<str:pk>/episodes/", views_live.evaluation_episodes, name="evaluation-episodes"),
    path(f"{HERE}<str:pk>/episodes/<str:episode>/", views_live.evaluation_episode, name="evaluation-episode"),
    path(f"{HERE}<str:pk>/calls/", views.evaluation_calls, name="evaluation-calls"),
    path(f"{HERE}<str:pk>/calls/<str:call>/", views.evaluation_call, name="evaluation-call"),
]
