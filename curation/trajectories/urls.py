from django.urls import URLPattern, path

from curation.trajectories.pages import fragments, views
from curation.trajectories.session.conversation import CONVERSATION
from curation.trajectories.session.steps import TERMINAL

TRAJECTORIES = "p/<slug:slug>/trajectories/"
ONE = f"{TRAJECTORIES}<str:pk>/"
TALK = f"{ONE}conversation/"

urlpatterns: list[URLPattern] = [
    path(TRAJECTORIES, views.trajectory_list, name="trajectory-list"),
    path("p/<slug:slug>/images/<str:digest>/", fragments.trajectory_image, name="trajectory-image"),
    path(f"{TRAJECTORIES}tasks/", views.trajectory_tasks, name="trajectory-tasks"),
    path(f"{TRAJECTORIES}agents/", views.trajectory_agents, name="trajectory-agents"),
    path("p/<slug:slug>/pairs/", views.pair_list, name="pair-list"),
    path(ONE, views.trajectory_page, name="trajectory-page"),
    path(f"{ONE}replay/", views.trajectory_replay, name="trajectory-replay"),
    path(f"{ONE}steps/", fragments.trajectory_steps, {"view": TERMINAL}, name="trajectory-steps"),
    path(f"{ONE}turns/<int:turn>/", fragments.trajectory_turn, {"view": TERMINAL}, name="trajectory-turn"),
    path(f"{ONE}find/", fragments.trajectory_find, {"view": TERMINAL}, name="trajectory-find"),
    path(f"{ONE}raw/", fragments.trajectory_raw, {"view": TERMINAL}, name="trajectory-raw"),
    path(f"{TALK}steps/", fragments.trajectory_steps, {"view": CONVERSATION}, name="trajectory-conversation-steps"),
    path(
        f"{TALK}turns/<int:turn>/",
        fragments.trajectory_turn,
        {"view": CONVERSATION},
        name="trajectory-conversation-turn",
    ),
    path(f"{TALK}find/", fragments.trajectory_find, {"view": CONVERSATION}, name="trajectory-conversation-find"),
    path(f"{TALK}raw/", fragments.trajectory_raw, {"view": CONVERSATION}, name="trajectory-conversation-raw"),
    path(f"{ONE}compare/", fragments.trajectory_compare, name="trajectory-compare"),
    path(f"{ONE}beside/", fragments.trajectory_beside, name="trajectory-beside"),
    path(f"{ONE}exchange/", fragments.trajectory_exchange, name="trajectory-exchange"),
    path(f"{ONE}exchange/<int:turn>/", fragments.trajectory_exchange_turn, name="trajectory-exchange-turn"),
    path(f"{ONE}exchange/raw/", fragments.trajectory_exchange_raw, name="trajectory-exchange-raw"),
]
