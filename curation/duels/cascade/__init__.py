"""A cascade: one judge reads all duels, and the full panel only those where that judge is unsure."""
