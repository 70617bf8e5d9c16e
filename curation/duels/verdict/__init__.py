"""The stage `verdict`, which accepts a run's challenger or not, and the report of a run."""
