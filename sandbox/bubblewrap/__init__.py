"""Sandboxes by bubblewrap: for a Linux machine without a container engine. `backend.find` begins here."""
