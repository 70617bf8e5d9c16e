"""Recipes: the samples, formats and splits of an export."""
