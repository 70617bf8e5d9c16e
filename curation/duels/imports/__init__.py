"""Import of agent turns and pull-request records."""
