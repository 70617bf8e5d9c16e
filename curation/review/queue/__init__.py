"""The queue: the next sample, its lease, its seats."""
