"""Worker processes: which are alive, which sandbox they have, what they clean up."""
