"""Service accounts: users of scripts, with tokens and a role in one project and no way to sign in."""
