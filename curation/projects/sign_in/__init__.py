"""Sign-in: limits of wrong passwords, the provider of single sign-on, and the page to change one's password."""
