"""Import rows from files and URLs. Scenarios, duels and evaluations each register an `ImportKind` here."""
