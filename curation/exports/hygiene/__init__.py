"""Duplicates, splits and caps: relations between the rows of an export."""
