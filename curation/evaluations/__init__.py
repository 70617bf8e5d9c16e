"""Evaluate models on held-out data: splits, static screens, live episodes, contamination, comparisons."""
