"""Scorers of one's own: a Python function, an HTTP endpoint or a rubric gives trajectories a reward."""
