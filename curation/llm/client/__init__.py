"""Calls to models: one gateway, one LiteLLM client, limits and prices."""
