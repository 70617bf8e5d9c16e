"""The gate: proves that a scenario takes work, and that its checker sees whether the work was done."""
