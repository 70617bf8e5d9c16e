"""A model over time: calls, errors, tokens, cost and latency by day."""
