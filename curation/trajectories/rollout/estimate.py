"""What a rollout would cost at most, before it is launched."""

from curation.projects.models import Project
from curation.runs.calls.targets import targets_named
from curation.runs.kinds import Estimate
from curation.trajectories.params import RolloutParams
from curation.trajectories.selection import rollable_in

# Tokens of the instructions with the orientation, of a reply, and of what a turn adds to the conversation.
BEGINNING, REPLY, TURN = 700, 60, 200


def rollout_estimate(project: Project, params: RolloutParams) -> Estimate:
    """Every episode is taken to use all its turns, each of which sends all turns before it again."""
    target = targets_named(project, [params.model], "model")[0]
    scenarios = rollable_in(project, params.filter).count()
    episodes, turns = scenarios * params.samples, params.max_turns
    calls = episodes * turns
    tokens_in = calls * BEGINNING + episodes * TURN * turns * (turns - 1) // 2
    note = f"An upper bound: {turns} turns in every one of {episodes} episodes; most end sooner."
    priced = Estimate.of_calls(target, items=episodes, calls=calls, tokens_in=tokens_in, tokens_out=calls * REPLY)
    return Estimate.total([priced], note)
