"""What the filter reads of trajectories, their scenarios and their pairs, as `queries` does of duels."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from django.db.models import TextField
from django.db.models.functions import Cast

from curation.exports.rows.freeze import PairKey
from curation.exports.rows.messages import BadHistory
from curation.exports.rows.queries import parsed
from curation.exports.rows.session import Rival, messages_of
from curation.exports.rows.skip_reasons import Reason
from curation.samples.models import Status as SampleStatus
from curation.scenarios.models import Status as ScenarioStatus
from curation.trajectories.models import NEVER_NEGATIVE, Outcome, Pair, Trajectory
from curation.web.lists.id_list import Among

_AT_ONCE = 50
_ADMITTED, _DRY_RUN = ScenarioStatus.ADMITTED.value, ScenarioStatus.DRY_RUN.value
_APPROVED, _INFRA = SampleStatus.APPROVED.value, Outcome.INFRA_ERROR.value
_NEVER_NEGATIVE = frozenset(outcome.value for outcome in NEVER_NEGATIVE)


class Rollout(NamedTuple):
    """A trajectory beside its scenario as that stands now. `axes` are the scenario's, `turns` are JSON."""

    sample_id: int
    trajectory_id: int
    outcome: str
    keep: bool
    terminal: str
    bundle_sha256: str
    scenario_status: str
    scenario_sha256: str
    axes: dict[str, object]
    turns: str

    @property
    def task(self) -> str:
        return str(self.axes.get("task", ""))


def read_rollouts(sample_ids: Sequence[int]) -> Iterator[Rollout | None]:
    """One for each of the ids, which ascend, in their order; None where the trajectory is gone."""
    columns = (
        "sample_id",
        "pk",
        "outcome",
        "keep",
        "terminal",
        "bundle_sha256",
        "scenario__status",
        "scenario__bundle_sha256",
        "scenario__axes",
        Cast("text__turns", TextField()),
    )
    found = Trajectory.objects.filter(sample_id__in=Among(sample_ids), text__isnull=False).order_by("sample_id")
    rows = found.values_list(*columns).iterator(chunk_size=_AT_ONCE)
    row = next(rows, None)
    for sample_id in sample_ids:
        if row is None or row[0] != sample_id:
            yield None
            continue
        yield Rollout._make(row)
        row = next(rows, None)


def rollout_reason(rollout: Rollout) -> Reason | None:
    """Why a trajectory may not leave. What it learnt must be proven by the scenario as that stands now: people edit
    scenarios because something is wrong with them."""
    if rollout.outcome == _INFRA:
        return Reason.INFRA_ERROR
    if rollout.scenario_status == _DRY_RUN:
        return Reason.DRY_RUN
    if rollout.scenario_status != _ADMITTED:
        return Reason.UNGATED
    if rollout.bundle_sha256 != rollout.scenario_sha256:
        return Reason.EDITED
    return None if rollout.keep else Reason.NOT_KEPT


class Rivals:
    """The rejected sides of the pairs that some samples' trajectories win, read while the samples pass by in order.

    `keys` are the pairs that count, ordered by sample and pair.
    """

    def __init__(self, keys: Sequence[PairKey]) -> None:
        self._keys: dict[int, list[int]] = {}
        for sample_id, pair_id in keys:
            self._keys.setdefault(sample_id, []).append(pair_id)
        self._rows = _pair_rows([key.pair_id for key in keys]) if keys else iter(())
        self._row = next(self._rows, None)

    def of(self, rollout: Rollout) -> list[Rival]:
        """The rivals of one trajectory; a pair that was deleted since is there with that reason."""
        return [self._rival(pair_id, rollout) for pair_id in self._keys.get(rollout.sample_id, ())]

    def _rival(self, pair_id: int, rollout: Rollout) -> Rival:
        while self._row is not None and self._row.order < (rollout.sample_id, pair_id):
            self._row = next(self._rows, None)
        row = self._row
        if row is None or row.pair_id != pair_id:
            return Rival(pair_id, "", 0, [], Reason.CHANGED)
        if row.outcome in _NEVER_NEGATIVE:
            return Rival(pair_id, row.strategy, row.at, [], Reason.NO_NEGATIVE)
        if row.sample_status == _APPROVED:
            return Rival(pair_id, row.strategy, row.at, [], Reason.BOTH_APPROVED)
        if row.bundle_sha256 != rollout.bundle_sha256:
            return Rival(pair_id, row.strategy, row.at, [], Reason.EDITED)
        try:
            return Rival(pair_id, row.strategy, row.at, messages_of(parsed(row.turns)), None)
        except BadHistory as bad:
            return Rival(pair_id, row.strategy, row.at, [], bad.reason)


class _PairRow(NamedTuple):
    sample_id: int
    pair_id: int
    strategy: str
    at: int
    outcome: str
    bundle_sha256: str
    sample_status: str | None
    turns: str

    @property
    def order(self) -> tuple[int, int]:
        return self.sample_id, self.pair_id


def _pair_rows(pair_ids: Sequence[int]) -> Iterator[_PairRow]:
    columns = (
        "chosen__sample_id",
        "pk",
        "strategy",
        "at",
        "rejected__outcome",
        "rejected__bundle_sha256",
        "rejected__sample__status",
        Cast("rejected__text__turns", TextField()),
    )
    pairs = Pair.objects.filter(pk__in=Among(pair_ids), rejected__text__isnull=False)
    rows = pairs.order_by("chosen__sample_id", "pk").values_list(*columns).iterator(chunk_size=_AT_ONCE)
    return map(_PairRow._make, rows)
