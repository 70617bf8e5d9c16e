"""Who decides which samples, how much each person is asked to decide, and second opinions."""
