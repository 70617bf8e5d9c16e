"""The database, where Django's own models and queries do not reach."""
