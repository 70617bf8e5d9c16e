"""What each person has set for themselves: keys, and how tables look."""
