"""Two models over the same rows: differences, leaderboard, baseline."""
