"""A project's settings, a typed document, and its name and guidelines."""
