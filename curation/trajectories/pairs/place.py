"""The place of a pair: the state in which two trajectories part, and the action of each."""

import hashlib

from curation.trajectories.models import Trajectory
from sandbox.agent.pairs import compared


def place_of(chosen: Trajectory, rejected: Trajectory, at: int) -> str:
    """Return a digest of the place, which is equal for all pairs that part in it; empty if the states of `chosen` are
    not known. Needs the steps and the trace of both."""
    trace = getattr(chosen, "trace", None)
    key = trace.keys[at - 1] if trace and at else ""
    actions = (str(compared(row.text.steps[at]).action) for row in (chosen, rejected))
    return hashlib.sha256("\0".join([key, *actions]).encode(errors="replace")).hexdigest() if key else ""
