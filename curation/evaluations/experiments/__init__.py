"""Experiments: what was trained on an export, with which settings, and whether it brought what was expected."""
