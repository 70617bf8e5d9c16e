"""Recipes: what goes into an export."""
