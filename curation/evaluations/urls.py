from django.urls import path

from curation.evaluations.compare import views as compare_views
from curation.evaluations.experiments import resource as experiment_views
from curation.evaluations.live import views as live_views
from curation.evaluations.screen import views
from curation.evaluations.splits import views as split_views

HERE = "p/<slug:slug>/evaluations/"
SPLITS = f"{HERE}splits/"
EXPERIMENTS = f"{HERE}experiments/"

urlpatterns = [
    path(HERE, views.evaluation_list, name="evaluation-list"),
    path(f"{HERE}new/", views.evaluation_new, name="evaluation-new"),
    path(f"{HERE}new/live/", live_views.evaluation_new_live, name="evaluation-new-live"),
    path(f"{HERE}new/live/estimate/", live_views.evaluation_estimate_live, name="evaluation-estimate-live"),
    path(f"{HERE}try-reset/", live_views.evaluation_try_reset, name="evaluation-try-reset"),
    path(f"{HERE}estimate/", views.evaluation_estimate, name="evaluation-estimate"),
    path(f"{HERE}line-up/", views.evaluation_line_up, name="evaluation-line-up"),
    path(f"{HERE}leaderboard/", compare_views.leaderboard_page, name="leaderboard"),
    path(f"{HERE}compare/", compare_views.evaluation_compare, name="evaluation-compare"),
    path(f"{HERE}compare/chart/", compare_views.compare_chart, name="compare-chart"),
    path(f"{HERE}baseline/pin/", compare_views.baseline_pin, name="baseline-pin"),
    path(f"{HERE}baseline/unpin/", compare_views.baseline_unpin, name="baseline-unpin"),
    path(EXPERIMENTS, experiment_views.experiment_list, name="experiment-list"),
    path(f"{EXPERIMENTS}<str:pk>/delete/", experiment_views.experiment_delete, name="experiment-delete"),
    path(SPLITS, split_views.split_list, name="split-list"),
    path(f"{SPLITS}<str:pk>/", split_views.split_page, name="split-page"),
    path(f"{SPLITS}<str:pk>/check/", split_views.split_check, name="split-check"),
    path(f"{HERE}<str:pk>/", views.evaluation_page, name="evaluation-page"),
    path(f"{HERE}<str:pk>/live/", views.evaluation_live, name="evaluation-live"),
    path(f"{HERE}<str:pk>/chart/", views.evaluation_chart, name="evaluation-chart"),
    path(f"{HERE}<str:pk>/episodes/", live_views.evaluation_episodes, name="evaluation-episodes"),
    path(f"{HERE}<str:pk>/episodes/<str:episode>/", live_views.evaluation_episode, name="evaluation-episode"),
    path(f"{HERE}<str:pk>/calls/", views.evaluation_calls, name="evaluation-calls"),
    path(f"{HERE}<str:pk>/calls/<str:call>/", views.evaluation_call, name="evaluation-call"),
]
