"""A recorded session as a terminal shows it."""
