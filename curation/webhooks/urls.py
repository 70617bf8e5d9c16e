from django.urls import URLPattern, path

from curation.webhooks import resource as views

urlpatterns: list[URLPattern] = [
    path("p/<slug:slug>/settings/webhooks/", views.webhook_list, name="webhook-list"),
    path("p/<slug:slug>/settings/webhooks/<str:pk>/test/", views.webhook_test, name="webhook-test"),
    path("p/<slug:slug>/settings/webhooks/<str:pk>/rotate/", views.webhook_rotate, name="webhook-rotate"),
    path("p/<slug:slug>/settings/webhooks/<str:pk>/delete/", views.webhook_delete, name="webhook-delete"),
]
