"""The run kind `shorten`: a session without its useless steps, if it still solves the task."""
