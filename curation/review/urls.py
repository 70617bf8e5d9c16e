"""Addresses of the review pages."""

from django.urls import path

from curation.review import views, views_actions, views_bulk, views_parts

SAMPLE = "p/<slug:slug>/samples/<int:pk>/"

urlpatterns = [
    path("p/<slug:slug>/queue/", views.queue, name="queue"),
    path("p/<slug:slug>/queue/undo/", views_actions.review_undo, name="review-undo"),
    path("p/<slug:slug>/queue/facts/", views_actions.answer_facts, name="answer-facts"),
    path("p/<slug:slug>/samples/bulk/", views_bulk.sample_bulk, name="sample-bulk"),
    path("p/<slug:slug>/samples/bulk/<str:batch>/undo/", views_bulk.sample_bulk_undo, name="sample-bulk-undo"),
    path(SAMPLE, views.sample_page, name="sample-page"),
    path(f"{SAMPLE}panel/", views.sample_panel, name="sample-panel"),
    path(f"{SAMPLE}decide/", views_actions.sample_decide, name="sample-decide"),
    path(f"{SAMPLE}revise/", views_actions.sample_revise, name="sample-revise"),
    path(f"{SAMPLE}draft/", views_actions.sample_draft, name="sample-draft"),
    path(f"{SAMPLE}heartbeat/", views_actions.lease_heartbeat, name="lease-heartbeat"),
    path(f"{SAMPLE}release/", views_actions.lease_release, name="lease-release"),
    path(f"{SAMPLE}editor/", views_parts.answer_editor, name="answer-editor"),
    path(f"{SAMPLE}sibling/", views_parts.sample_sibling, name="sample-sibling"),
    path(f"{SAMPLE}diff/", views_parts.answer_diff, name="answer-diff"),
    path(f"{SAMPLE}history/", views_parts.history_window, name="history-window"),
    path(f"{SAMPLE}history/find/", views_parts.history_find, name="history-find"),
    path(f"{SAMPLE}history/raw/", views_parts.history_raw, name="history-raw"),
    path(f"{SAMPLE}history/<int:index>/", views_parts.history_turn, name="history-turn"),
]
