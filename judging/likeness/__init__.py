"""Near duplicates: MinHash signatures, and groups of rows by them."""
