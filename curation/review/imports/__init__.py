"""Import of samples with their decisions, such as those of our own exports."""
