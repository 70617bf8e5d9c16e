"""Groups of failures, and of samples unlike anything reviewed so far."""
