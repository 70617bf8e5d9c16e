"""A model is paid in attempts to be rewarded without doing the task; a teacher mends what gets in."""
