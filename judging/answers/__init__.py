"""Answers of models: read, and what can be counted in them."""
