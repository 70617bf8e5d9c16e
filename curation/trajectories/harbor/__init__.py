"""Trials of tasks by Harbor's agents, as runs of ours."""
