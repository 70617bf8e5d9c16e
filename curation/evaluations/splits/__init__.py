"""Held-out splits and their rows."""
