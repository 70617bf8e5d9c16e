"""Everything that the page of one sample shows."""
