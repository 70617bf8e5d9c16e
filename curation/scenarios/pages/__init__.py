"""Pages and REST calls of scenarios."""
