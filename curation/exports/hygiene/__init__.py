"""Duplicates, splits and caps: what the rows of an export have to do with each other."""
