"""The verdicts that a run scores duels with: its own and those that it reused, or those of an earlier score."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import orjson
from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from curation.duels.models import Verdict
from curation.duels.params import JudgeParams, Panel, RescoreParams
from curation.duels.score.models import Score, ScorePanel
from curation.runs.models import Item, ItemState, Run
from curation.web.ids import IdList
from judging.panel.scoring import OrderedVerdict

# So many characters of a verdict's fingerprint are part of the panel.
MARK = 16
# The stages whose items are readings; those after the first are of a cascade.
READING_STAGES = ("judge", "compare", "panel")
Reading = tuple[str, str]


class VerdictRow(NamedTuple):
    pk: int
    duel_id: int
    judge: str
    order: str
    fingerprint: str
    parsed: bool
    dimensions: Mapping[str, int]
    attempts: int

    def ordered(self) -> OrderedVerdict:
        return OrderedVerdict(self.judge, self.order, self.dimensions if self.parsed else None, self.attempts)


@dataclass(slots=True)
class DuelReadings:
    """The verdicts on one duel, and the (judge, order) whose calls failed, unlike replies that did not parse.

    `planned` are the fingerprints of judges that may have no verdict.
    """

    orders: tuple[str, ...]
    verdicts: list[VerdictRow] = field(default_factory=list)
    failed: set[Reading] = field(default_factory=set)
    planned: dict[str, str] = field(default_factory=dict)

    def fingerprints(self, judges: Sequence[str]) -> dict[str, str]:
        """The fingerprints of each judge's verdicts; two if its endpoint was changed between them."""
        marks: dict[str, set[str]] = {judge: set() for judge in judges}
        for row in self.verdicts:
            if row.judge in marks:
                marks[row.judge].add(row.fingerprint[:MARK])
        return {judge: "+".join(sorted(found)) or self.planned.get(judge, "") for judge, found in marks.items()}


def readings_of(
    run: Run, ids: Sequence[int], panel: Panel, params: JudgeParams | RescoreParams
) -> dict[int, DuelReadings]:
    if isinstance(params, RescoreParams):
        return _of_earlier_scores(ids, panel, params)
    return readings_of_run(run, ids, panel.orders)


def verdicts_with(ids: Iterable[int]) -> dict[int, VerdictRow]:
    return {row.pk: row for row in _rows(Verdict.objects.filter(pk__in=IdList(list(ids))))}


def read_reasons(ids: Iterable[int]) -> dict[int, tuple[str, str, bool, str]]:
    """Return judge, order, whether it parsed, and the reason, by the verdict's id."""
    rows = Verdict.objects.filter(pk__in=IdList(list(ids))).values_list("pk", "judge", "order", "parsed", "reason")
    return {pk: (judge, order, parsed, reason) for pk, judge, order, parsed, reason in rows}


def _rows(verdicts: QuerySet[Verdict]) -> Iterator[VerdictRow]:
    """Return the rows in the order of their ids. There are only 243 dimensions to say, so few are decoded."""
    columns = ("pk", "duel_id", "judge", "order", "fingerprint", "parsed", "attempts", "said")
    rows = verdicts.order_by("pk").annotate(said=Cast("dimensions", TextField())).values_list(*columns)
    for *row, attempts, said in rows:
        yield VerdictRow._make((*row, _dimensions(said), attempts))


@lru_cache(maxsize=1024)
def _dimensions(said: str) -> Mapping[str, int]:
    found: dict[str, int] = orjson.loads(said)
    return found


def readings_of_run(run: Run, ids: Sequence[int], orders: tuple[str, ...]) -> dict[int, DuelReadings]:
    """Read the run's items of the stages of judges: done ones made a verdict, skipped ones name the one they reuse."""
    found: dict[int, DuelReadings] = {pk: DuelReadings(orders) for pk in ids}
    reused: list[int] = []
    items = Item.objects.filter(run=run, stage__in=READING_STAGES, target_id__in=IdList(ids))
    for target_id, state, data in items.values_list("target_id", "state", "data"):
        readings = found[target_id or 0]
        readings.planned[data["judge"]] = data.get("fingerprint", "")
        if state == ItemState.FAILED:
            readings.failed.add((data["judge"], data["order"]))
        elif state == ItemState.SKIPPED and "verdict" in data:  # missing if it was replaced before verdicts were kept
            reused.append(data["verdict"])
    for row in [*_rows(Verdict.objects.filter(run=run, duel__in=IdList(ids))), *verdicts_with(reused).values()]:
        found[row.duel_id].verdicts.append(row)
    return found


def _of_earlier_scores(ids: Sequence[int], panel: Panel, params: RescoreParams) -> dict[int, DuelReadings]:
    """Use the verdicts of the run that is scored again, else of the score that counts, else of the newest one.

    A judge that had no part in that score has its newest verdicts on the duel.
    """
    bases, panels = _bases(ids, params)
    verdicts = verdicts_with([pk for base in bases.values() for pk in base.verdicts])
    found: dict[int, DuelReadings] = {}
    others: dict[str, list[int]] = defaultdict(list)
    for pk in ids:
        base = bases.get(pk)
        known = panels[base.panel_id].fingerprints if base else {}
        orders = tuple(panels[base.panel_id].orders) if base else panel.orders
        found[pk] = DuelReadings(orders, planned=known)
        if base:
            found[pk].failed = {(judge, order) for judge, order in base.failed}
            found[pk].verdicts = [verdicts[verdict] for verdict in base.verdicts if verdict in verdicts]
        for judge in panel.judges:
            if judge not in known:
                others[judge].append(pk)
    for judge, of in others.items():
        newest: dict[tuple[int, str], VerdictRow] = {}
        for row in _rows(Verdict.objects.filter(duel__in=IdList(of), judge=judge)):
            newest[row.duel_id, row.order] = row
        for row in newest.values():
            found[row.duel_id].verdicts.append(row)
    return found


def _bases(ids: Sequence[int], params: RescoreParams) -> tuple[dict[int, Score], dict[int, ScorePanel]]:
    """Return the earlier scores whose verdicts are used again, by duel, and their panels."""
    scores = Score.objects.filter(duel__in=IdList(ids)).order_by("scored_at", "pk")
    if params.run is not None:
        found = _newest(scores.filter(run=int(params.run)))
    else:
        found = _newest(scores.filter(counts_for__isnull=False))
        if others := [pk for pk in ids if pk not in found]:
            found |= _newest(scores.filter(duel__in=IdList(others)))
    return found, ScorePanel.objects.in_bulk({base.panel_id for base in found.values()})


def _newest(scores: QuerySet[Score]) -> dict[int, Score]:
    return {row.duel_id: row for row in scores.only("duel_id", "panel_id", "verdicts", "failed")}
