"""The Docker backend: `engine` (the daemon and its clients), `image` (what a session's root is made of), `backend`."""
