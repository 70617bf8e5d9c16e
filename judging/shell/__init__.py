"""Shell scripts cut into commands and words."""
