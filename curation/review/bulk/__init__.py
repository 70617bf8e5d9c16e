"""The same decision on many samples, and its undo."""
