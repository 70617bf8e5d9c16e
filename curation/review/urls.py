"""Addresses of the review pages."""

from django.urls import path

from curation.review import views

urlpatterns = [
    path("p/<slug:slug>/queue/", views.queue, name="queue"),
    path("p/<slug:slug>/samples/<int:pk>/", views.sample_page, name="sample-page"),
    path("p/<slug:slug>/samples/<int:pk>/panel/", views.sample_panel, name="sample-panel"),
    path("p/<slug:slug>/samples/bulk/", views.sample_bulk, name="sample-bulk"),
    path("p/<slug:slug>/samples/bulk/<str:batch>/undo/", views.sample_bulk_undo, name="sample-bulk-undo"),
]
