"""The settings of a project: one typed document."""
