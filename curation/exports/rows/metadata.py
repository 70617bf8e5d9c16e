"""The columns of rows with `metadata: true`."""

import re
from collections.abc import Mapping, Sequence

from curation.exports.formats.row import Columns
from curation.exports.rows.queries import ExportedRollout
from curation.exports.rows.skip_reasons import FrozenSample
from curation.samples.models import UNSCORED
from curation.trajectories.imported.save import main_reward
from curation.trajectories.models import RECORDED

# Of an axis with a reward of an imported row.
REWARD = "reward."
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")
# Beside these, a row has the columns of the project's questions (`LabelColumns`).
METADATA: Columns = {
    **dict.fromkeys(("id", "source", "instance_id", "scenario", "repo", "tier", "task", *RECORDED), "string"),
    "score": "float64",
    "bucket": "string",
    "reviewers": ["string"],
    "guarantee": "string",
    "run": "string",
    "outcome": "string",
    "reward": "float64",
    "rewards": "json",
    "metadata": "json",
}


def metadata_of(
    sample: FrozenSample,
    reviewers: Sequence[str],
    rollout: ExportedRollout | None,
    kept: Mapping[str, str],
    guarantee: int | None,
) -> dict[str, object]:
    """Return the columns of `metadata: true`. `kept` are the axes of the sample: the outcome, the rewards and the
    metadata of an imported row among them. `guarantee` is the one that approved the sample. Text that does not apply is
    empty and a missing score is -1, because a column of nulls has no type."""
    axes = rollout.labels if rollout is not None else {}
    rewards = {name.removeprefix(REWARD): float(value) for name, value in kept.items() if _is_reward(name, value)}
    others = {name: value for name, value in kept.items() if name != "outcome" and not _is_reward(name, value)}
    return {
        "id": str(sample.sample_id),
        "source": sample.source,
        "instance_id": sample.instance_id if rollout is None or rollout.is_imported else "",
        "scenario": "" if rollout is None or rollout.is_imported else sample.instance_id,
        "repo": sample.repo,
        "tier": str(axes.get("tier", axes.get("difficulty", ""))),
        "task": "" if rollout is None else rollout.task,
        **{name: str(axes.get(name, "")) for name in RECORDED},
        "score": UNSCORED if sample.score is None else float(sample.score),
        "bucket": sample.bucket,
        "reviewers": list(reviewers),
        "guarantee": "" if guarantee is None else str(guarantee),
        "run": "" if sample.run_id is None else str(sample.run_id),
        "outcome": kept.get("outcome", "") if rollout is None else rollout.outcome,
        "reward": main_reward(rewards) if rollout is None else rollout.reward,
        "rewards": rewards if rollout is None else rollout.rewards,
        "metadata": others if rollout is None else {**others, **rollout.metadata},
    }


def _is_reward(name: str, value: str) -> bool:
    return name.startswith(REWARD) and _NUMBER.fullmatch(value) is not None
