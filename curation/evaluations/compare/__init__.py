"""Comparisons of models: two of them, the leaderboard, the baseline."""
