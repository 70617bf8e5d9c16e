"""Pages and REST calls of trajectories."""
