"""Addresses of the exports pages."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
