"""Model endpoints and how they are called; the only LiteLLM import is `litellm_client.py`."""
