"""Pages and REST calls of runs."""
