"""The curated unit, its lists, filters and saved views."""
