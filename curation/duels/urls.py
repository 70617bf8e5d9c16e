"""Addresses of the duels pages."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
