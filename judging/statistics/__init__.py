"""Rates, intervals, tests, the acceptance gate."""
