"""Models improve answers with the judges' reasons, and panels judge new texts against king and parent."""
