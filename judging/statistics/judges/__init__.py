"""How judges behave: their readings, figures and flaws, also on duels whose outcome is known."""
