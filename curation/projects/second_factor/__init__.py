"""The second factor of local accounts: codes of an authenticator app (TOTP), and recovery codes."""
