"""The static screen: every row of a split to every model, one answer each."""
