"""Does the data make a model better: held-out splits, static screens, comparison, contamination, leaderboard."""
