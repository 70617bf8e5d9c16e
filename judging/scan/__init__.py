"""Secrets and personal data in texts: rules, checks, the scan, and masks."""
