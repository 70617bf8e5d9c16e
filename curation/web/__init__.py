"""The common parts of every app's pages and calls: keyset pages, problem details, list parameters, idempotency, the
page shell."""
