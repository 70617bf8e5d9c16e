"""Rows of an evaluation that occur in training data: what counts as the same, and the search for it."""
