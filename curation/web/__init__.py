"""What every app shares at its door: keyset pages, problem details, list parameters, idempotency, the page shell."""
