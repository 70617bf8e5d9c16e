"""Rounds of self-training: rollout, review, export, and the trained model as the next operator."""
