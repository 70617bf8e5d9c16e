"""API tokens, and how a call is authenticated."""
