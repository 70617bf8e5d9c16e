"""Questions of a project's own, and the labels with which people answer them."""
