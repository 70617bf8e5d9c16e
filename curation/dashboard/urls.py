"""Addresses of the dashboard pages."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
