"""Rows of a split that are in training data."""
