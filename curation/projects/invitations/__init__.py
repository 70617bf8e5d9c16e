"""Invitations to a project: made by an admin, accepted by the person who has the link or the name."""
