"""The values of steps as the pages, filters and exports read them, and the advantages of a probe."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from django.db.models import Max, QuerySet

from curation.runs.kinds import Json
from curation.runs.models import Item, ItemState, Run
from curation.trajectories.models import StepAdvantage, StepValue
from curation.trajectories.params import ProbeParams
from curation.web.ids import IdList
from judging.statistics.rates import Interval
from judging.statistics.values import ActionVerdict, Advantage, advantage

VERDICT_TONES = {
    ActionVerdict.BETTER: "good",
    ActionVerdict.WORSE: "bad",
    ActionVerdict.LIKELY: "borderline",
    ActionVerdict.ALIKE: "muted",
    ActionVerdict.OPEN: "muted",
}


def looks_of(params: ProbeParams) -> int:
    """The number of times that a comparison is looked at: at the rollouts at hand, and after each round."""
    return params.rounds + 1


def compare(row: StepAdvantage, params: ProbeParams) -> Advantage:
    """Actions that lead to the same state, of which the terminal has shown the same, are alike."""
    if row.value.key and row.value.key == row.against.key:
        return Advantage(0.0, Interval(0.0, 0.0), ActionVerdict.ALIKE)
    return advantage(row.value.value, row.against.value, looks=looks_of(params), margin=params.alike_within)


def settle(rows: QuerySet[StepAdvantage], params: ProbeParams) -> None:
    """Store the advantages as the rollouts so far have them."""
    found = list(rows.select_related("value", "against"))
    for row in found:
        known = compare(row, params)
        row.difference, row.verdict = known.difference, known.verdict
        row.low, row.high = known.interval.low, known.interval.high
    StepAdvantage.objects.bulk_update(found, ["difference", "low", "high", "verdict"], batch_size=500)


def step_rates(sample_ids: Sequence[int], *, before: datetime) -> dict[int, dict[int, float]]:
    """Return the values of steps, from 0 to 1, by sample and position: those of the last probe of each trajectory that
    had ended before."""
    rows = StepValue.objects.filter(trajectory__sample__in=IdList(sample_ids), run__finished_at__lt=before)
    found: dict[int, dict[int, float]] = {}
    last: dict[int, int] = {}
    for row in rows.select_related("trajectory").order_by("run_id", "at"):
        sample, rate = row.trajectory.sample_id or 0, row.value.rate
        if last.get(sample) != row.run_id:
            last[sample], found[sample] = row.run_id, {}
        if rate is not None:
            found[sample][row.at] = rate
    return found


def probe_figures(run: Run) -> Json:
    """The result of a probe: comparisons by verdict, and the rollouts that they rest on."""
    verdicts = Counter(StepAdvantage.objects.filter(value__run=run).values_list("verdict", flat=True))
    values = StepValue.objects.filter(run=run, ended=False).values("key").order_by()
    states = values.annotate(new=Max("rollouts"), at_hand=Max("shared")).values_list("new", "at_hand")
    replays = Item.objects.filter(run=run, stage="states", state=ItemState.DONE).order_by()
    return {
        "comparisons": verdicts.total(),
        **{verdict.value: verdicts[verdict.value] for verdict in ActionVerdict},
        "rollouts": sum(new for new, _ in states),
        "shared": sum(at_hand for _, at_hand in states),
        "differ": replays.filter(result__agrees=False).count(),
    }
