"""The axes of scenarios and how they are covered."""
