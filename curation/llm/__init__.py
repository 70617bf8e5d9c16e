"""Model endpoints and calls to them. Only `client/litellm_client.py` imports LiteLLM."""
