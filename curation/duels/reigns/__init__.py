"""The project's line of kings: accepted challengers that were crowned, and the runs against each."""
