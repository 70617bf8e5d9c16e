"""Addresses of the review page: the page, its actions, its fragments."""
