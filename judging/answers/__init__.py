"""Answers of models: reading them, and facts that can be counted."""
