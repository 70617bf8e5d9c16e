"""The queue: the next sample, its lease and its seats."""
