"""Model endpoints and how they are called; the only LiteLLM import is `client/litellm_client.py`."""
