"""Projects, members and roles, API tokens, settings, the audit log."""
