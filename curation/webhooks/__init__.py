"""Signed notices to other systems: a run ended, a sample was decided, an export is ready."""
