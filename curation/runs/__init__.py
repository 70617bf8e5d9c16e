"""Runs and their items: launch, claim, heartbeat, retry, cancel, resume, progress, cost, every recorded call."""
