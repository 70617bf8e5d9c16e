"""Calls to models: the gateway, the LiteLLM client, limits, prices."""
