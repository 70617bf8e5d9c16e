"""Model endpoints: their values, which admins set, and the hosts that are allowed."""
