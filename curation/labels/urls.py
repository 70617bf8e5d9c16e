from django.urls import URLPattern, path

from curation.labels import questions as views

urlpatterns: list[URLPattern] = [
    path("p/<slug:slug>/settings/labels/", views.question_list, name="question-list"),
    path("p/<slug:slug>/settings/labels/<str:pk>/", views.question_change, name="question-change"),
]
