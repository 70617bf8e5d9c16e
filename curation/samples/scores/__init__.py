"""How scoring stages write samples, and the order of the queue."""
