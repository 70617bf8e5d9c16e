"""One decision on many samples, and its undo."""
