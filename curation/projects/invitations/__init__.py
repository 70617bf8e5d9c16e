"""Invitations to a project: made by an admin, accepted with the link or by the invited user."""
