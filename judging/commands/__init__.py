"""One-shot commands against the expected one; contamination."""
