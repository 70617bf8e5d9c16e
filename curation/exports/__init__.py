"""Recipes, rows per format, splits, manifest, files."""
