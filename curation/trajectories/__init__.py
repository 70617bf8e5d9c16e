"""Rollouts of models through scenarios: recorded, replayed, paired."""
