"""Rows tried against a chat template, in a process of its own."""
