"""Requests to other servers: which hosts are allowed, and connections to the addresses that were checked."""
