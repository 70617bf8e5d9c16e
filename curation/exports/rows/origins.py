"""Origins: the answers, verdicts and model calls that the rows of a sample come from, by id."""

from collections import defaultdict
from collections.abc import Sequence
from typing import TypedDict

from curation.duels.models import Duel, Verdict
from curation.duels.score.models import Score
from curation.runs.models import Call
from curation.trajectories.models import Trajectory
from curation.web.lists.id_list import IdList, KeyList


class Origin(TypedDict):
    """Ids as text. `calls` are those whose reply was kept; the attempts before them are found by their items."""

    answers: list[str]
    verdicts: list[str]
    calls: list[str]


def read_origins(turns: Sequence[int], trajectories: Sequence[int]) -> dict[int, Origin]:
    """Return the origins of samples of turns and of trajectories. Five queries at most."""
    found: dict[int, Origin] = defaultdict(lambda: Origin(answers=[], verdicts=[], calls=[]))
    duels = Duel.objects.filter(sample_id__in=IdList(turns)).order_by("sample_id")
    sides = ("challenger_id", "challenger__call_id", "king_id", "king__call_id")
    for sample_id, challenger, challenger_call, king, king_call in duels.values_list("sample_id", *sides):
        answers = [str(pk) for pk in (challenger, king) if pk is not None]
        calls = [str(pk) for pk in (challenger_call, king_call) if pk is not None]
        found[sample_id] = {"answers": answers, "verdicts": [], "calls": calls}
    # The verdicts that made the score that counts, not those of other runs.
    scores = Score.objects.filter(counts_for__sample__in=IdList(turns)).values_list("verdicts", flat=True)
    verdicts = Verdict.objects.filter(pk__in=IdList([pk for ids in scores for pk in ids])).order_by("pk")
    for sample_id, verdict, call in verdicts.values_list("duel__sample_id", "pk", "call_id"):
        found[sample_id]["verdicts"].append(str(verdict))
        if call is not None:
            found[sample_id]["calls"].append(str(call))
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
            found[samples[run, key]]["calls"].append(str(pk))
