"""Rows of data sets, by their columns."""
