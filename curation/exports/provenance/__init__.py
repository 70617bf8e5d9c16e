"""From an exported row to every model call that made it, and back."""
