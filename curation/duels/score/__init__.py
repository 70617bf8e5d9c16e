"""The stage `score`: verdicts become a score and a bucket."""
