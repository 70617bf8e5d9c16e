"""Pages and REST calls of duels."""
