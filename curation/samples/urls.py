"""Addresses of the samples pages."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
