"""Trials of a judge's instructions against what people decided, and control duels."""
