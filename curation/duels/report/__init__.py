"""The stage verdict and the report of a run."""
