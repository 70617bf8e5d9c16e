"""What is known of samples before anybody decides them: the facts that a model of decisions reads."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from curation.duels.models import Duel, Verdict
from curation.review.models import Clearance
from curation.samples.models import SCANNED, Flag, Sample
from curation.trajectories.models import Trajectory
from curation.web.ids import IdList
from judging.panel.scoring import OrderedVerdict, score_duel

Facts = dict[str, float | str]
_FLAGS = [flag for flag in Flag if not flag & SCANNED]
_SAMPLE = {
    "kind": "kind",
    "score": "score",
    "source": "source",
    "repo": "repository",
    "model": "model",
    "action_style": "action style",
}
_DUEL = {
    "opponent": "opponent",
    "spread": "spread of the judges",
    "prompt__tokens": "tokens of the history",
    "prompt__turn_index": "turn",
    "king__model": "model of the king",
    "king__tokens": "tokens of the king",
    "king__commands": "commands of the king",
    "challenger__tokens": "tokens of the answer",
    "challenger__commands": "commands of the answer",
    "challenger__blocks": "code blocks of the answer",
    "challenger__has_thought": "has a thought",
    "challenger__attempt": "attempts",
    "challenger__leak_score": "leak score",
}
_TRAJECTORY = {
    "agent": "agent",
    "task": "task",
    "outcome": "outcome",
    "terminal": "terminal",
    "replay": "replay",
    "reward": "reward",
    "checker_passed": "checker passed",
    "steps": "steps",
    "commands": "commands",
    "tokens": "tokens",
    "seconds": "seconds",
    "cost": "cost",
    "repeated_share": "repeated commands",
    "longest_repeat": "longest repeat",
    "format_errors": "format errors",
}


def facts_of(ids: Sequence[int]) -> list[Facts]:
    """Return the facts of these samples, in their order, in a few queries. A sample that is gone has none.

    A decision changes none of them: a finding that a person cleared is still one, and a revision's leak is not the
    answer's.
    """
    found: dict[int, Facts] = {pk: {} for pk in ids}
    cleared = set(Clearance.objects.filter(sample__in=IdList(ids)).values_list("sample_id", flat=True))
    for row in Sample.objects.filter(pk__in=IdList(ids)).values("pk", "flags", "axes", *_SAMPLE):
        facts = found[row["pk"]]
        facts.update(_named(row, _SAMPLE))
        facts["finding of the scan"] = float(bool(row["flags"] & SCANNED) or row["pk"] in cleared)
        facts.update({f"flag {flag.label}": float(bool(row["flags"] & flag)) for flag in _FLAGS})
        facts.update({f"axis {name}": str(value) for name, value in row["axes"].items()})
    duels = Duel.objects.filter(sample__in=IdList(ids))
    judged = _judges(duels.values_list("pk", "counting__verdicts", "counting__panel__orders"))
    for row in duels.values("pk", "sample_id", "flags", "metrics", *_DUEL):
        facts = found[row["sample_id"]]
        facts.update(_named(row, _DUEL))
        facts["flag leak"] = float(bool(row["flags"] & Flag.LEAK))
        facts.update({f"score: {name}": float(value) for name, value in row["metrics"].items()})
        facts.update(judged.get(row["pk"], {}))
        if row["king__tokens"]:
            facts["length against the king"] = row["challenger__tokens"] / row["king__tokens"]
    for row in Trajectory.objects.filter(sample__in=IdList(ids)).values("sample_id", "rewards", *_TRAJECTORY):
        facts = found[row["sample_id"]]
        facts.update(_named(row, _TRAJECTORY))
        facts.update({f"reward {name}": float(value) for name, value in _numbers(row["rewards"])})
    return list(found.values())


def _named(row: Mapping[str, Any], names: Mapping[str, str]) -> Facts:
    given = ((name, row[column]) for column, name in names.items())
    return {
        name: value if isinstance(value, str) else float(value)
        for name, value in given
        if value is not None and value != ""
    }


def _numbers(rewards: Mapping[str, object]) -> Iterator[tuple[str, float]]:
    for name, value in rewards.items():
        if isinstance(value, int | float):
            yield name, float(value)


def _judges(counting: Iterable[tuple[int, list[int] | None, list[str] | None]]) -> dict[int, Facts]:
    """Each judge's score and flips, from the verdicts that made the score that counts."""
    orders = {duel: (frozenset(verdicts), asked) for duel, verdicts, asked in counting if verdicts and asked}
    said: dict[int, list[OrderedVerdict]] = defaultdict(list)
    columns = ("pk", "duel_id", "judge", "order", "dimensions")
    rows = Verdict.objects.filter(duel__in=IdList(list(orders)), parsed=True).order_by("pk").values_list(*columns)
    for pk, duel, judge, order, dimensions in rows:
        if pk in orders[duel][0]:
            said[duel].append(OrderedVerdict(judge, order, dimensions))
    found: dict[int, Facts] = {}
    for duel, verdicts in said.items():
        panel = list(dict.fromkeys(verdict.judge for verdict in verdicts))
        facts = found.setdefault(duel, {})
        judges = score_duel(verdicts, panel=panel, orders=orders[duel][1], min_judges=1).judges
        for judge in judges:
            facts[f"score by {judge.judge}"] = 100 * judge.score
            facts[f"flips of {judge.judge}"] = float(len(judge.flips))
        facts["flips"] = float(sum(len(judge.flips) for judge in judges))
    return found
