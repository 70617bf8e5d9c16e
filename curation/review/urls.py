"""Addresses of the review pages."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
