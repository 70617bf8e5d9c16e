"""Live episodes: models that act in an environment until its task is done, and the figures of these episodes."""
