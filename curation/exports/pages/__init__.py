"""Pages and REST calls of exports."""
