"""Experiments: the model trained on an export, its settings, and whether it changed as expected."""
