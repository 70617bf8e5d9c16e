"""The page and REST call of thresholds: what people approved by score, and what other bucket edges would move."""
