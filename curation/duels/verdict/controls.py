"""The judges of a run on its control duels, and the rules of its gate."""

from collections.abc import Iterable, Sequence

from curation.duels.models import Duel, Verdict
from curation.duels.score.readings import VerdictRow, readings_of_run
from curation.runs.models import Item, Run
from curation.web.ids import IdList
from judging.panel.scoring import score_duel
from judging.planted_faults import ControlKind
from judging.statistics.gate import GateSettings
from judging.statistics.judges.controls import ControlDuel
from judging.statistics.judges.readings import JudgedDuel


def control_duels(
    run: Run, judges: Sequence[str], *, verdicts: Iterable[int], orders: tuple[str, ...]
) -> list[ControlDuel]:
    """Return the control duels as the judges read them.

    They are those of the run, and of the runs that made these `verdicts`: a rescore asks no judge anything. `orders`
    are those in which the duels were read.
    """
    made = Verdict.objects.filter(pk__in=IdList(list(verdicts)), run__isnull=False)
    runs = {run.pk, *made.order_by().values_list("run", flat=True).distinct()}
    read: dict[int, list[VerdictRow]] = {}
    known = Duel.everything.of(run.project).exclude(control="").values("pk")
    for each in Run.objects.filter(pk__in=runs).order_by("pk"):
        items = Item.objects.filter(run=each, stage="judge", target_id__in=known)
        ids = sorted({pk for pk in items.values_list("target_id", flat=True) if pk})
        for pk, readings in readings_of_run(each, ids, orders).items():
            read.setdefault(pk, []).extend(row for row in readings.verdicts if row.judge in judges)
    duels = Duel.everything.in_bulk(list(read))
    found = []
    for pk, rows in read.items():
        ordered = tuple(row.ordered() for row in rows)
        score = score_duel(ordered, panel=judges, orders=orders)
        found.append(ControlDuel(ControlKind(duels[pk].control), duels[pk].expected or 0, JudgedDuel(ordered, score)))
    return found


def gate_settings(run: Run, *, min_judges: int | None, orders: Iterable[tuple[str, ...]]) -> GateSettings:
    """`orders` are those in which the duels were read."""
    gate = run.settings.gate
    return GateSettings(
        min_parsed=gate.min_parsed,
        win_margin=gate.win_margin,
        resamples=gate.resamples,
        seed=gate.seed,
        cluster=gate.cluster,
        min_judges=min_judges,
        min_clusters=gate.min_clusters,
        equivalent_within=gate.equivalent_within,
        strict=gate.strict,
        one_order=any(len(each) == 1 for each in orders),
    )
