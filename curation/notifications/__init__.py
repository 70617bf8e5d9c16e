"""Notifications to one person: a mention, a resolved flag. Nothing is sent by e-mail."""
