"""Instructions to models, and a project's own in their place."""
