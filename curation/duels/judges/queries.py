"""Reads: the runs with figures about judges, people's decisions on their duels, and the gate for other judges."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Exists, OuterRef

from curation.duels.judge.said import choices_of_people
from curation.duels.models import Duel
from curation.duels.score.models import Score
from curation.duels.score.panels import PanelRules
from curation.duels.score.readings import verdicts_with
from curation.duels.verdict.report import REPORTED_KINDS
from curation.duels.verdict.stage import REFERENCE, Contestant, Pair, keys_of
from curation.projects.models import Project
from curation.runs.models import Run
from curation.web.lists.id_list import IdList
from judging.panel.scoring import DuelScore, score_duel
from judging.statistics.acceptance import GateDuel, GateResult, GateSettings, acceptance
from judging.statistics.controls import Kappa, cohens_kappa

_CONTESTANT = ("side", "model", "instructions_hash", "fingerprint")


@dataclass(frozen=True, slots=True)
class WithPeople:
    """A judge against people: κ of their choices (challenger, opponent, draw), and the share of the same ones;
    `against` counts the others."""

    kappa: Kappa
    accuracy: float | None
    against: int


def judged_runs(project: Project, panel: str | None = None) -> list[Run]:
    """Return the runs that scored duels and have their figures, the newest first; with `panel`, only that panel's."""
    scores = Score.objects.filter(run=OuterRef("pk"))
    if panel:
        scores = scores.filter(panel__digest=panel)
    runs = Run.objects.of(project).filter(Exists(scores), kind__in=REPORTED_KINDS).order_by("-pk")
    return [run for run in runs if run.result.get("judges")]


def with_people(run: Run, judges: Sequence[str]) -> dict[str, WithPeople]:
    """Compare each judge's preference with what most people chose, over the duels that the judge parsed."""
    people = choices_of_people(run)
    pairs: dict[str, list[tuple[int, int]]] = {judge: [] for judge in judges}
    rows = Score.objects.filter(run=run, duel__in=IdList(list(people))).select_related("panel")
    for duel, score in _rescored(list(rows), (), None):
        for judge in score.judges:
            if judge.judge in pairs:
                centred = round(judge.score - 0.5, 9)
                pairs[judge.judge].append(((centred > 0) - (centred < 0), people[duel]))
    return {judge: _compare(found) for judge, found in pairs.items()}


def gates_without(
    run: Run, panel: Sequence[str], without: Sequence[str], weights: Mapping[str, float] | None
) -> list[tuple[Pair, GateResult]]:
    """Return each pair of contestants with its gate for the panel without some judges, or with other weights.

    Nothing is written. Without weights those of each score remain. A duel needs at most as many judges as are left.
    """
    judges = [judge for judge in panel if judge not in without]
    rows = list(Score.objects.filter(run=run).select_related("panel").order_by("duel_id"))
    facts = _facts(run)
    pairs: dict[tuple[str, str], Pair] = {}
    gated: dict[tuple[str, str], list[GateDuel]] = defaultdict(list)
    needed = len(judges)
    for row in rows:
        needed = min(needed, row.panel.min_judges)
    for duel, score in _rescored(rows, without, weights):
        pair, repo, instance_id, leak = facts[duel]
        pairs[keys_of(pair)] = pair
        gated[keys_of(pair)].append(GateDuel(score, repo, instance_id, leak))
    gate = run.settings.gate
    settings = GateSettings(
        min_parsed=gate.min_parsed,
        win_margin=gate.win_margin,
        resamples=gate.resamples,
        seed=gate.seed,
        cluster=gate.cluster,
        min_judges=needed,
    )
    return [
        (pair, acceptance(gated[keys_of(pair)], panel=judges, settings=settings)) for pair in sorted(pairs.values())
    ]


def _rescored(
    rows: Sequence[Score], without: Sequence[str], weights: Mapping[str, float] | None
) -> list[tuple[int, DuelScore]]:
    verdicts = verdicts_with([pk for row in rows for pk in row.verdicts])
    rules: dict[int, PanelRules] = {}
    found = []
    for row in rows:
        made_by = rules.get(row.panel_id) or rules.setdefault(row.panel_id, PanelRules.of(row.panel))
        judges = [name for name, _ in made_by.judges if name not in without]
        if judges:
            score = score_duel(
                [verdicts[pk].ordered() for pk in row.verdicts if pk in verdicts],
                panel=judges,
                orders=made_by.orders,
                min_judges=min(made_by.min_judges, len(judges)),
                weights=weights or dict(made_by.weights) or None,
            )
            found.append((row.duel_id, score))
    return found


def _facts(run: Run) -> dict[int, tuple[Pair, str, str, bool]]:
    """Return by duel its pair of contestants, repository, instance, and whether the challenger's answer leaks."""
    challenger = [f"challenger__{name}" for name in _CONTESTANT]
    king = [f"king__{name}" for name in _CONTESTANT]
    flags = ("challenger__leak_flag", "challenger__reader_flag")
    columns = ("pk", "prompt__repo", "prompt__instance_id", *flags, *challenger, *king)
    found = {}
    for pk, repo, instance_id, leak, read, *sides in Duel.objects.filter(scores__run=run).values_list(*columns):
        opponent = REFERENCE if sides[4] is None else Contestant(*sides[4:])
        found[pk] = (Contestant(*sides[:4]), opponent), repo, instance_id, leak or read
    return found


def _compare(pairs: Sequence[tuple[int, int]]) -> WithPeople:
    kappa = cohens_kappa([judge for judge, _ in pairs], [person for _, person in pairs])
    same = sum(one == two for one, two in pairs)
    return WithPeople(kappa, same / len(pairs) if pairs else None, len(pairs) - same)
