"""The duels whose outcome is known, and their fixed parts: one to write instructions by, the other to test them."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from django.db.models import Q

from curation.duels.judge.controls import choices_of_people
from curation.duels.models import Duel, Opponent, TrialTask
from curation.guarantees.models import Draw
from curation.projects.models import Project
from curation.web.ids import IdList
from judging.planted_faults import ControlKind

# Controls that say whether a judge tells better from worse. A bribe says something else, and those of people are
# decided duels.
CONTROLS = (ControlKind.FAULT.value, ControlKind.SAME.value)


class KnownDuel(NamedTuple):
    """A duel with its outcome: 1 for the challenger, -1 for its opponent, 0 for neither. `control` is its kind,
    empty of one that people decided."""

    duel: int
    expected: int
    task: str
    control: str


def known_duels(project: Project, known: str) -> list[KnownDuel]:
    """Return the project's duels that people decided, with `known` "audited" only those that an audit drew at random,
    and the control duels, in the order of their ids."""
    decided = Duel.objects.of(project).exclude(opponent=Opponent.NONE)
    if known == "audited":
        decided = decided.filter(sample__in=Draw.objects.filter(audit__project=project).offered().values("sample"))
    outcomes = choices_of_people(decided)
    known_ones = Q(pk__in=IdList(list(outcomes))) | Q(control__in=CONTROLS)
    columns = ("pk", "control", "expected", "prompt_id", "prompt__instance_id", "prompt__repo")
    rows = Duel.everything.of(project).filter(known_ones).order_by("pk").values_list(*columns)
    return [
        KnownDuel(pk, (expected or 0) if kind else outcomes[pk], instance or repo or f"prompt {prompt}", kind)
        for pk, kind, expected, prompt, instance, repo in rows
    ]


def held_out(project: Project, duels: Sequence[KnownDuel]) -> dict[str, bool]:
    """Return whether each task is held out: as stored, and a new one on the side with fewer duels, the largest first.
    No outcome has a say in it."""
    sizes = Counter(one.task for one in duels)
    sides = dict(TrialTask.objects.filter(project=project).values_list("task", "held_out"))
    counts = Counter({False: 0, True: 0})
    for task, side in sides.items():
        counts[side] += sizes[task]
    new = sorted(sizes.keys() - sides.keys(), key=lambda task: (-sizes[task], hashlib.sha256(task.encode()).digest()))
    for task in new:
        sides[task] = counts[True] < counts[False]
        counts[sides[task]] += sizes[task]
    return sides


def hold_out(project: Project, duels: Sequence[KnownDuel]) -> dict[str, bool]:
    """Store the side of each new task, and return those of all."""
    sides = held_out(project, duels)
    rows = [TrialTask(project=project, task=task, held_out=side) for task, side in sides.items()]
    TrialTask.objects.bulk_create(rows, ignore_conflicts=True)
    return dict(TrialTask.objects.filter(project=project).values_list("task", "held_out"))
