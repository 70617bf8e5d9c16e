"""Mappings of rows that a project has saved."""
