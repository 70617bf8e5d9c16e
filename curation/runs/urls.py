"""Addresses of the runs pages."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
