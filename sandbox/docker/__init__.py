"""The Docker backend: `engine` (the daemon and its clients), `image` (the root of a session), `backend`."""
