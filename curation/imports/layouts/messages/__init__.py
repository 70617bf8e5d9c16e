"""Messages of every format as steps, and steps as messages."""
