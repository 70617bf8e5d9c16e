"""Each person's own settings: keys, and how tables look."""
