"""Predicted approval, decisions to look at again, and groups of samples that are alike."""
