"""HTTP for every request: middleware, problems as responses, ETags, idempotency."""
