"""Rows of a split that stand in training data."""
