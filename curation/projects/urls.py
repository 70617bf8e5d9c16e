"""Addresses of the projects pages."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
