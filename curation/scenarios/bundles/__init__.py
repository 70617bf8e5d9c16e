"""Bundles: one scenario as one JSON document."""
