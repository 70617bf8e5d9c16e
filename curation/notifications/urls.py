from django.urls import URLPattern, path

from curation.notifications import views

urlpatterns: list[URLPattern] = [
    path("notifications/", views.notification_list, name="notification-list"),
    path("notifications/read/", views.notification_read_all, name="notification-read-all"),
    path("notifications/<str:pk>/open/", views.notification_open, name="notification-open"),
]
