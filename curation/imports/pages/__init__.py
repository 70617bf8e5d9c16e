"""Pages and REST calls of imports."""
