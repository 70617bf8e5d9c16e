"""The demo: a running site with a sample project."""
