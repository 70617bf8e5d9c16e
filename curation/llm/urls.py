"""Addresses of the llm pages."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
