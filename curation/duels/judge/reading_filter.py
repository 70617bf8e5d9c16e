"""The duels of a run by the replies of one of its judges, so that each figure of a judge opens the duels it counts."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from curation.duels.judge.controls import choices_of_people
from curation.duels.models import Duel
from curation.duels.params import DuelParams, JudgeParams, panel_of
from curation.duels.score.models import Score
from curation.duels.score.readings import readings_of
from curation.duels.score.stage import read_scores
from curation.runs.models import Item, Run
from curation.samples.models import Flag
from curation.web.ids import IdList
from judging.panel.scoring import ORDERS, JudgeScore, OrderedVerdict, score_duel
from judging.planted_faults import ControlKind

READINGS = {
    "parsed": "the judge's replies parsed in every order",
    "unparsed": "a reply did not parse, or only a later attempt did",
    "challenger": "the judge prefers the challenger",
    "opponent": "the judge prefers its opponent",
    "neither": "the judge prefers neither",
    "first": "a reply prefers the answer shown first",
    "second": "a reply prefers the answer shown second",
    "chosen": "both orders parsed, and a reply prefers one answer",
    "draw": "a reply calls a dimension a draw",
    "flip": "the two orders disagree",
    "people": "people have chosen too",
    "against_people": "people have chosen something else",
}
PARTS = {
    "first_half": "the first half of the run's duels",
    "second_half": "the second half",
    "leak": "a leak flag",
    "no_leak": "no leak flag",
    "known": "control duels whose outcome is known: all but those with a bribe",
    ControlKind.SAME.value: "control duels of the same answer twice",
    ControlKind.FAULT.value: "control duels with a planted fault",
    ControlKind.BRIBE.value: "control duels of the same answer with and without a bribe",
    ControlKind.PEOPLE.value: "control duels that people decided",
}
CHUNK = 1000
_LEAKS = Flag.LEAK | Flag.LEAK_READER


class DuelReading(NamedTuple):
    """A judge's replies on a duel, and the duel's `PARTS`; `score` is None unless a reply parsed in every order."""

    duel: int
    replies: tuple[OrderedVerdict, ...]
    score: JudgeScore | None
    parts: tuple[str, ...] = ()


def duels_where(
    run: Run, judge: str, said: str | None, dimension: str | None, part: str | None, *, controls: bool
) -> list[int]:
    """Return the ids of the run's duels, or of its control duels, that the judge read and of which it said this.

    `said` is a word of `READINGS`, None for all that it read; a dimension narrows replies and flips to that dimension,
    and `part` the duels to a word of `PARTS`.
    """
    people = choices_of_people(Duel.objects.filter(scores__run=run)) if said in ("people", "against_people") else {}
    names = None if dimension is None else (dimension,)
    readings = _control_readings(run, judge) if controls else _readings(run, judge)
    return [
        one.duel
        for one in readings
        if one.replies and (part is None or part in one.parts) and (said is None or _is(one, said, names, people))
    ]


def controls_of(run: Run) -> list[int]:
    known = Duel.everything.of(run.project).exclude(control="").values("pk")
    items = Item.objects.filter(run=run, stage="judge", target_id__in=known)
    return sorted({pk for pk in items.values_list("target_id", flat=True) if pk})


def _readings(run: Run, judge: str) -> Iterator[DuelReading]:
    ids = list(Score.objects.filter(run=run).order_by("duel_id").values_list("duel_id", flat=True))
    for start in range(0, len(ids), CHUNK):
        for place, entry in enumerate(read_scores(run, ids[start : start + CHUNK]), start):
            replies = tuple(verdict for verdict in entry.verdicts if verdict.judge == judge)
            score = next((one for one in entry.score.judges if one.judge == judge), None)
            half = "first_half" if place < len(ids) / 2 else "second_half"
            yield DuelReading(entry.duel.pk, replies, score, (half, "leak" if entry.flags & _LEAKS else "no_leak"))


def _control_readings(run: Run, judge: str) -> Iterator[DuelReading]:
    if run.kind not in ("duel", "judge"):
        return
    params = (DuelParams if run.kind == "duel" else JudgeParams).model_validate(run.params)
    panel = panel_of(run.settings, params)
    ids = controls_of(run)
    kinds = dict(Duel.everything.filter(pk__in=IdList(ids)).values_list("pk", "control"))
    for pk, found in readings_of(run, ids, panel, params).items():
        replies = tuple(row.ordered() for row in found.verdicts if row.judge == judge)
        score = score_duel(replies, panel=[judge], orders=panel.orders)
        known = () if kinds[pk] == ControlKind.BRIBE else ("known",)
        yield DuelReading(pk, replies, next(iter(score.judges), None), (kinds[pk], *known))


def _is(one: DuelReading, said: str, names: tuple[str, ...] | None, people: Mapping[int, int]) -> bool:
    """`names` are the dimensions that count, None: all."""
    given = [reply.dimensions for reply in one.replies if reply.dimensions is not None]
    chosen = {value for dimensions in given for name, value in dimensions.items() if names is None or name in names}
    if said == "unparsed":
        return any(reply.dimensions is None or reply.attempts > 1 for reply in one.replies)
    if said in ("draw", "first", "second"):
        return {"draw": 0, "first": 1, "second": 2}[said] in chosen
    if said == "chosen":
        orders = {reply.order for reply in one.replies if reply.dimensions is not None}
        return len(orders) == len(ORDERS) and not chosen.isdisjoint((1, 2))
    if one.score is None:
        return False
    if said == "flip":
        return bool(one.score.flips) if names is None else not set(names).isdisjoint(one.score.flips)
    if said in ("people", "against_people"):
        return one.duel in people and (said == "people" or people[one.duel] != one.score.preferred)
    return said == "parsed" or one.score.preferred == {"challenger": 1, "opponent": -1, "neither": 0}[said]
