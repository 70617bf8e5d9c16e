"""Trials of a judge's instructions against decisions of people, and control duels."""
