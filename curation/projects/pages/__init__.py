"""Pages and REST calls of projects."""
