"""Exports in dataset repositories of a Hugging Face hub."""
