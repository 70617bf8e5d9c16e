"""The stages king and challenger: one answer per prompt."""
