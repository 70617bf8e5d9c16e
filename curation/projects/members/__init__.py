"""Who works on a project."""
