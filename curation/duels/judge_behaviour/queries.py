"""Reads: the runs with figures about judges, people's decisions on their duels, and the gate for other judges."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from django.db.models import Exists, OuterRef
from pydantic import Field

from curation.duels.judge.controls import choices_of_people
from curation.duels.models import Duel
from curation.duels.params import BOTH_ORDERS
from curation.duels.score.facts import duel_facts
from curation.duels.score.models import Score
from curation.duels.score.readings import verdicts_with
from curation.duels.verdict.controls import control_duels, gate_settings
from curation.duels.verdict.report import REPORTED_KINDS
from curation.duels.verdict.stage import Pair, contestants_of, gate_duel, keys_of
from curation.projects.models import Project
from curation.runs.models import Run
from curation.web.ids import IdList
from curation.web.schemas import Out
from judging.panel.scoring import DuelScore, score_duel
from judging.statistics.acceptance import GateResult, acceptance
from judging.statistics.gate import GateDuel
from judging.statistics.judges.controls import cohens_kappa, control_figures


class PeopleOut(Out):
    """A judge's preferences against people's, over `n` duels that both decided."""

    n: int = Field(examples=[40])
    kappa: float | None = Field(examples=[0.61], description="Cohen's κ; null where only one choice occurs.")
    kappa_interval: list[float] | None = Field(examples=[[0.4, 0.82]], description="95 %.")
    accuracy: float | None = Field(examples=[0.8], description="Share of duels with the same choice.")
    against: int = Field(exclude=True)


def judged_runs(project: Project, panel: str | None = None) -> list[Run]:
    """Return the runs that scored duels and have their figures, the newest first; with `panel`, only that panel's."""
    scores = Score.objects.filter(run=OuterRef("pk"))
    if panel:
        scores = scores.filter(panel__digest=panel)
    runs = Run.objects.of(project).filter(Exists(scores), kind__in=REPORTED_KINDS).order_by("-pk")
    return [run for run in runs if run.result.get("judges")]


def with_people(run: Run, judges: Sequence[str]) -> dict[str, PeopleOut]:
    """Compare each judge's preference with what most people chose, over the duels that the judge parsed."""
    people = choices_of_people(Duel.objects.filter(scores__run=run))
    pairs: dict[str, list[tuple[int, int]]] = {judge: [] for judge in judges}
    rows = Score.objects.filter(run=run, duel__in=IdList(list(people))).select_related("panel")
    for duel, score in _rescored(list(rows), (), None):
        for judge in score.judges:
            if judge.judge in pairs:
                pairs[judge.judge].append((judge.preferred, people[duel]))
    return {judge: _compare(found) for judge, found in pairs.items()}


def gates_without(
    run: Run, panel: Sequence[str], without: Sequence[str], weights: Mapping[str, float] | None
) -> list[tuple[Pair, GateResult]]:
    """Return each pair of contestants with its gate for the panel without some judges, or with other weights.

    Nothing is written. Without weights those of each score remain. A duel needs at most as many judges as are left.
    """
    judges = [judge for judge in panel if judge not in without]
    rows = list(Score.objects.filter(run=run).select_related("panel").order_by("duel_id"))
    facts = duel_facts([row.duel_id for row in rows])
    flags = {row.duel_id: row.flags for row in rows}
    pairs: dict[tuple[str, str], Pair] = {}
    gated: dict[tuple[str, str], list[GateDuel]] = defaultdict(list)
    needed = min([len(judges), *(row.panel.min_judges for row in rows)])
    for duel, score in _rescored(rows, without, weights):
        pair = contestants_of(facts[duel])
        pairs[keys_of(pair)] = pair
        gated[keys_of(pair)].append(gate_duel(facts[duel], score, flags[duel]))
    settings = gate_settings(run, min_judges=needed, orders={tuple(row.panel.orders) for row in rows})
    read = [pk for row in rows for pk in row.verdicts]
    orders = tuple(rows[0].panel.orders) if rows else BOTH_ORDERS
    controls = control_figures(control_duels(run, judges, verdicts=read, orders=orders), panel=judges)
    return [
        (pair, acceptance(gated[keys_of(pair)], panel=judges, controls=controls, settings=settings))
        for pair in sorted(pairs.values())
    ]


def _rescored(
    rows: Sequence[Score], without: Sequence[str], weights: Mapping[str, float] | None
) -> list[tuple[int, DuelScore]]:
    verdicts = verdicts_with([pk for row in rows for pk in row.verdicts])
    found = []
    for row in rows:
        judges = [name for name in row.panel.fingerprints if name not in without]
        if judges:
            score = score_duel(
                [verdicts[pk].ordered() for pk in row.verdicts if pk in verdicts],
                panel=judges,
                orders=row.panel.orders,
                min_judges=min(row.panel.min_judges, len(judges)),
                weights=weights or row.panel.weights,
            )
            found.append((row.duel_id, score))
    return found


def _compare(pairs: Sequence[tuple[int, int]]) -> PeopleOut:
    found = cohens_kappa([judge for judge, _ in pairs], [person for _, person in pairs])
    same = sum(one == two for one, two in pairs)
    return PeopleOut(
        n=found.n,
        kappa=found.kappa,
        kappa_interval=None if found.interval is None else [found.interval.low, found.interval.high],
        accuracy=same / len(pairs) if pairs else None,
        against=len(pairs) - same,
    )
