"""Approve without looking: audits, what they prove, and guarantees."""
