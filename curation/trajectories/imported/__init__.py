"""Runs of agents that happened elsewhere."""
