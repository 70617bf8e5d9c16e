"""Prompts: list, page, exclusions."""
