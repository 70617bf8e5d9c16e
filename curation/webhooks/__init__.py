"""Webhooks: signed messages to other systems when a run ends, a sample is decided or an export is ready."""
