"""Scenarios that are the same but for their names: found when a bundle is saved, and counted once."""
