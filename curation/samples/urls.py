"""Addresses of the samples pages. The page of one sample and the bulk decisions are `curation.review`'s."""

from django.urls import path

from curation.samples.list import views

urlpatterns = [
    path("p/<slug:slug>/samples/", views.sample_list, name="sample-list"),
    path("p/<slug:slug>/samples/count/", views.sample_count, name="sample-count"),
    path("p/<slug:slug>/samples/bulk/confirm/", views.sample_bulk_confirm, name="sample-bulk-confirm"),
    path("p/<slug:slug>/samples/<int:pk>/similar/", views.sample_similar, name="sample-similar"),
    path("p/<slug:slug>/samples/views/", views.saved_view_create, name="saved-view-create"),
    path("p/<slug:slug>/samples/views/<int:pk>/delete/", views.saved_view_delete, name="saved-view-delete"),
]
