"""Origins: the answers, verdicts and model calls that the rows of a sample come from, by id."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from curation.duels.models import Duel, Verdict
from curation.duels.score.models import Score
from curation.runs.models import Call
from curation.trajectories.models import Trajectory
from curation.web.lists.id_list import IdList, KeyList


@dataclass(slots=True)
class Origin:
    """`calls` are those whose reply was kept; the attempts before them are found by their items."""

    answers: list[int] = field(default_factory=list)
    verdicts: list[int] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)

    def as_json(self) -> dict[str, list[str]]:
        return {name: [str(pk) for pk in getattr(self, name)] for name in ("answers", "verdicts", "calls")}


def read_origins(turns: Sequence[int], trajectories: Sequence[int]) -> dict[int, Origin]:
    """Return the origins of samples of turns and of trajectories. Five queries at most."""
    found: dict[int, Origin] = defaultdict(Origin)
    duels = Duel.objects.filter(sample_id__in=IdList(turns)).order_by("sample_id")
    sides = ("challenger_id", "challenger__call_id", "king_id", "king__call_id")
    for sample_id, challenger, challenger_call, king, king_call in duels.values_list("sample_id", *sides):
        origin = found[sample_id]
        origin.answers = [pk for pk in (challenger, king) if pk is not None]
        origin.calls = [pk for pk in (challenger_call, king_call) if pk is not None]
    # The verdicts that made the score that counts, not those of other runs.
    scores = Score.objects.filter(counts_for__sample__in=IdList(turns)).values_list("verdicts", flat=True)
    verdicts = Verdict.objects.filter(pk__in=IdList([pk for ids in scores for pk in ids])).order_by("pk")
    for sample_id, verdict, call in verdicts.values_list("duel__sample_id", "pk", "call_id"):
        origin = found[sample_id]
        origin.verdicts.append(verdict)
        if call is not None:
            origin.calls.append(call)
    if trajectories:
        _add_rollouts(found, trajectories)
    return found


def _add_rollouts(found: dict[int, Origin], trajectories: Sequence[int]) -> None:
    rows = Trajectory.objects.filter(sample_id__in=IdList(trajectories), run__isnull=False)
    columns = rows.values_list("sample_id", "run_id", "scenario_id", "sample_index", "item_key")
    samples = {
        (run, item_key if scenario is None else f"{scenario}:{index}"): sample
        for sample, run, scenario, index, item_key in columns
    }
    for run in {run for run, _ in samples}:
        keys = [key for of, key in samples if of == run]
        calls = Call.objects.filter(
            run=run, item__stage__in=("rollout", "episodes"), item__key__in=KeyList(keys)
        ).order_by("pk")
        for pk, key in calls.values_list("pk", "item__key"):
            found[samples[run, key]].calls.append(pk)
