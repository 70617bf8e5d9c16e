"""What is nearly the same: MinHash signatures, and groups of rows by them."""
