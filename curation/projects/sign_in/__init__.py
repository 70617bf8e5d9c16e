"""Sign-in: limits of wrong passwords, and the page to change one's password."""
