"""Sandboxes with bubblewrap, for Linux machines without a container engine. Start at `backend.find`."""
