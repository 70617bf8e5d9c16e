"""Audits and guarantees: random samples that people look at, and approvals without a look that these allow."""
