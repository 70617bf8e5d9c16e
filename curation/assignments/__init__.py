"""Samples that are assigned to people, and how much each person is asked to decide."""
