"""The static screen: one answer of every model to every row of a split."""
