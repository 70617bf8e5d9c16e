"""Hostile text made safe to store and to show."""
