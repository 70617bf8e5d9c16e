"""Model endpoints: what admins set, which hosts are allowed."""
