"""Prompts, king, challenger, judges, buckets, report."""
