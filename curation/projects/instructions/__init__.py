"""Instructions to models: the shipped texts and a project's own versions."""
