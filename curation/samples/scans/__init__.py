"""Secrets and personal data in texts of samples: each text is scanned once per version of the rules."""
