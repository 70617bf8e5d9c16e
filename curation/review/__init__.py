"""The queue, leases, decisions, undo, revisions."""
