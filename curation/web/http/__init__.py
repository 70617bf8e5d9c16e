"""Around every request: refusals, ETags, idempotency, the rate limit."""
