"""The model of decisions: its run, its predictions, its page and calls."""
