"""The page and REST call of thresholds: approvals by score, and the samples that other bucket edges would move."""
