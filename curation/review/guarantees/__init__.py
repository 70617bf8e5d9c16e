"""Approve without looking: audits, their proofs, and guarantees."""
