from datetime import datetime
from typing import Any

from ninja import Schema
from pydantic import Field

from curation.evaluations.compare.leaderboard import Leaderboard
from curation.evaluations.live.schemas import LiveScoreOut
from curation.evaluations.models import EvaluatedModel
from curation.evaluations.screen.schemas import ScoreOut
from curation.evaluations.splits.schemas import SplitRef, split_ref
from curation.web.schemas import Strict

Json = dict[str, Any]


class LeaderOut(Schema):
    """`against` compares with the pinned baseline; `regressed`: a metric is shown to be worse."""

    place: int
    evaluation: str
    baseline: bool
    regressed: bool
    against: Json | None
    created_at: datetime
    figures: ScoreOut | LiveScoreOut


class LeaderboardOut(Schema):
    split: SplitRef | None
    kind: str = Field(examples=["static"])
    mixed: bool = Field(description="The evaluations sent different numbers of rows.")
    data: list[LeaderOut]
    next_cursor: str | None = None


class ComparisonOut(Schema):
    """`low` and `high` are the 95 % interval of `delta`. `said` is "likely different" (`p_corrected` below 0.05) or
    "clearly different" (below 0.01): `p_tasks` of the sign-flip test over tasks, corrected by Holm for all
    `comparisons`; "equivalent within …" if the difference is shown to be below `margin` (`p_equivalence` of two
    one-sided tests, corrected likewise, below 0.05); else "not known"; or "incomplete", if results are missing. `note`
    says where the interval alone would say something else. `tasks_missing` are the further tasks that the change would
    need to be clear. `p` is McNemar's, rows one by one; it decides nothing."""

    before: Json
    after: Json
    rows: int
    tasks: int
    unpaired: int
    missing: int = Field(description="Rows or episodes that both were asked for and one of them has no result of.")
    incomplete: bool = Field(description="Results are missing: every verdict is `incomplete`.")
    notes: list[str] = Field([], description="What to know before the figures are read, such as second tries.")
    comparisons: int
    method: str
    conclusion: str = Field(description="In words, from the verdicts alone.")
    metrics: list[Json]
    tiers: list[Json]
    gains: list[Json]
    losses: list[Json]


class BaselineIn(Strict):
    model: str = Field("", examples=["base"], description="Optional if the evaluation has one model.")


def leaderboard_out(board: Leaderboard) -> Json:
    split = board.split
    entries = (
        [_leader(rank, entry, split.baseline_of(board.kind)) for rank, entry in enumerate(board.entries, 1)]
        if split
        else []
    )
    return {
        "split": split_ref(split),
        "kind": board.kind.value,
        "mixed": board.mixed,
        "data": entries,
        "next_cursor": None,
    }


def _leader(rank: int, entry: EvaluatedModel, baseline: EvaluatedModel | None) -> Json:
    return {
        "place": rank,
        "evaluation": str(entry.evaluation_id),
        "baseline": baseline is not None and baseline.pk == entry.pk,
        "regressed": entry.regressed,
        "against": entry.against or None,
        "created_at": entry.evaluation.created_at,
        "figures": entry.figures,
    }
