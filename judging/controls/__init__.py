"""Control duels: answers with one plain fault, whose loser is known."""
