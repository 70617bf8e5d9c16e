"""The leaderboard: each agent with each model on each set of tasks, by REST and for a page."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from django.db.models import Avg, Case, Count, F, Q, Value, When
from django.http import HttpRequest
from ninja import Query, Router
from pydantic import Field

from curation.projects.access import Access, enter
from curation.projects.models import Scope
from curation.samples.blind import without_pending
from curation.trajectories.filters import TrajectoryFilter
from curation.trajectories.models import KEPT, Outcome, TrajectoryQuerySet, outcomes_named
from curation.web.schemas import Dollars, answer, out
from curation.web.text.markup import with_signs
from judging.statistics.paired import MeanDifference, PairedVerdict, difference
from judging.statistics.paired_tests import holm
from judging.statistics.rates import Attempts, Pass, mean_pass_at, mean_pass_hat

router = Router(tags=["trajectories"])

# Rollouts have neither the name of an agent nor a file that they come from.
OWN_AGENT, OWN_TASKS = "Winnow", "Scenarios"
RESAMPLES, MOST = 2_000, 200
_FAILED, _ERRORS = outcomes_named(Outcome.FAILED), (*outcomes_named(Outcome.ERROR), Outcome.TIMEOUT)


class AgentBoard(TrajectoryFilter):
    """The trajectories that match a filter, by agent, model and set of tasks."""

    beside: ClassVar[frozenset[str]] = frozenset({"k"})

    k: int = Field(default=5, ge=1, le=1000, description="Attempts of `pass_at_k` and `pass_hat_k`.")


@out
class AgainstOut:
    """The difference of `pass_at_1` from the first entry of the set, over the tasks of both."""

    delta: float = Field(examples=[-0.1])
    low: float = Field(examples=[-0.3])
    high: float = Field(examples=[0.1])
    p: float = Field(examples=[0.31], description="Of this comparison alone.")
    tasks: int = Field(examples=[20])
    verdict: str = Field(examples=["not known"], description="Corrected for all comparisons of the board (Holm).")


@out
class PassOut:
    """A share with its 95 % interval, whose clusters are the tasks."""

    k: int = Field(examples=[5])
    value: float = Field(examples=[0.5])
    low: float = Field(examples=[0.15])
    high: float = Field(examples=[0.85])
    tasks: int = Field(examples=[20])
    left_out: int = Field(examples=[0], description="Tasks with fewer than `k` attempts.")


@out
class AgentOut:
    """An agent with a model on a set of tasks. Errors of the machine and unknown outcomes are no attempts."""

    task_set: str = Field(examples=["terminal-bench@2.0"])
    agent: str = Field(examples=["terminus-2"])
    model: str = Field(examples=["small"])
    tasks: int = Field(examples=[20])
    attempts: int = Field(examples=[80])
    errors: int = Field(examples=[1])
    tokens: float | None = Field(examples=[41_000.0], description="Mean of the trajectories whose tokens are known.")
    cost: Dollars | None = Field(
        examples=["0.21"], description="Mean of the trajectories whose cost is known, in dollars."
    )
    pass_at_1: PassOut | None = Field()
    pass_at_k: PassOut | None = Field(description="One of `k` attempts is solved; null without `k` attempts at a task.")
    pass_hat_k: PassOut | None = Field(description="All of `k` attempts are solved.")
    # The tasks by name.
    tried: dict[str, Attempts] = Field(exclude=True)
    tasks_missing: int = Field(examples=[0], description="Tasks that only others of the set have attempts at.")
    against_first: AgainstOut | None = Field(
        default=None, description="Null for the first of a set, and without common tasks."
    )

    @property
    def shares(self) -> tuple[PassOut | None, ...]:
        return self.pass_at_1, self.pass_at_k, self.pass_hat_k

    @property
    def rate(self) -> float:
        return self.pass_at_1.value if self.pass_at_1 else -1.0


def leaderboard(access: Access, params: AgentBoard) -> list[AgentOut]:
    """Return the entries by their set of tasks, in each the best first, compared with the best."""
    rows = without_pending(access, params.apply(access.project), "sample")
    entries = sorted(_entries(rows, params.k), key=lambda one: (one.task_set, -one.rate, one.agent, one.model))
    every: dict[str, set[str]] = defaultdict(set)
    for entry in entries:
        every[entry.task_set] |= entry.tried.keys()
    known = [replace(entry, tasks_missing=len(every[entry.task_set]) - entry.tasks) for entry in entries[:MOST]]
    return _compared(known, access.project.settings.evaluation.equivalent_within)


def board_page(access: Access, params: AgentBoard) -> list[tuple[str, list[AgentOut]]]:
    """Return the entries of each set of tasks, with names that a page can show."""
    shown: dict[str, list[AgentOut]] = {}
    for entry in leaderboard(access, params):
        named = replace(entry, agent=with_signs(entry.agent), model=with_signs(entry.model))
        shown.setdefault(with_signs(entry.task_set), []).append(named)
    return list(shown.items())


def _entries(rows: TrajectoryQuerySet, k: int) -> Iterator[AgentOut]:
    own = Q(scenario__isnull=False)
    labelled = rows.order_by().annotate(
        by=Case(When(own, then=Value(OWN_AGENT)), default=F("agent")),
        of=Case(When(own, then=Value(OWN_TASKS)), When(~Q(environment=""), then=F("environment")), default=F("source")),
        named=Case(When(own, then=F("scenario__name")), default=F("task")),
    )
    known = labelled.exclude(named="")
    counts: dict[tuple[str, str, str], dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    counted = known.values_list("of", "by", "model", "named", "outcome").annotate(n=Count("pk"))
    for of, by, model, subject, outcome, number in counted:
        counts[of, by, model][subject][outcome] = number
    tokens = Avg("tokens", filter=Q(tokens__gt=0))
    for row in known.values("of", "by", "model").annotate(mean_tokens=tokens, mean_cost=Avg("cost")):
        outcomes = counts[row["of"], row["by"], row["model"]]
        every = [found for of_task in outcomes.values() for found in of_task.items()]
        tried = {name: task for name, of_task in outcomes.items() if (task := attempts_of(of_task)).attempts}
        tasks = list(tried.values())
        yield AgentOut(
            task_set=row["of"],
            agent=row["by"],
            model=row["model"],
            tasks=len(tried),
            tried=tried,
            tasks_missing=0,
            attempts=sum(task.attempts for task in tasks),
            errors=sum(number for outcome, number in every if outcome in _ERRORS),
            tokens=row["mean_tokens"],
            cost=row["mean_cost"],
            pass_at_1=_share(mean_pass_at(tasks, 1)),
            pass_at_k=_share(mean_pass_at(tasks, k)),
            pass_hat_k=_share(mean_pass_hat(tasks, k)),
        )


def _share(found: Pass | None) -> PassOut | None:
    if found is None:
        return None
    return PassOut(found.k, found.value, found.interval.low, found.interval.high, found.tasks, found.left_out)


def attempts_of(counts: Mapping[str, int]) -> Attempts:
    """Return the attempts of a task by the number of its outcomes."""
    solved = sum(counts.get(outcome, 0) for outcome in KEPT)
    return Attempts(solved, solved + sum(counts.get(outcome, 0) for outcome in _FAILED))


def _compared(entries: Sequence[AgentOut], margin: float) -> list[AgentOut]:
    """Return the entries, all but the first of each set with their comparison with that."""
    first: dict[str, AgentOut] = {}
    found: dict[int, MeanDifference] = {}
    for place, entry in enumerate(entries):
        best = first.setdefault(entry.task_set, entry)
        if best is not entry and (change := _difference(best, entry, margin)):
            found[place] = change
    ps = holm([change.p for change in found.values()])
    equal = holm([change.equivalence for change in found.values()])
    words = f"{100 * margin:g} points"
    said = {
        place: AgainstOut(
            change.delta,
            change.interval.low,
            change.interval.high,
            change.p,
            change.tasks,
            PairedVerdict.at(p, same).within(words),
        )
        for (place, change), p, same in zip(found.items(), ps, equal, strict=True)
    }
    return [replace(entry, against_first=said.get(place)) for place, entry in enumerate(entries)]


def _difference(best: AgentOut, entry: AgentOut, margin: float) -> MeanDifference | None:
    """Return the change of the share that is solved, over the tasks that both have attempts at."""
    both = [name for name in best.tried if name in entry.tried]
    if not both:
        return None
    before, after = ([one.tried[name].rate for name in both] for one in (best, entry))
    return difference(before, after, both, margin=margin, largest=1.0, resamples=RESAMPLES)


@router.get(
    "/projects/{slug}/agents",
    response=answer("AgentsOut", data=list[AgentOut]),
    summary="Compare agents and models by their trajectories",
)
def list_agents(request: HttpRequest, slug: str, params: Query[AgentBoard]) -> dict[str, object]:
    """At most 200 entries: by their set of tasks, in each the best `pass_at_1` first. Those who review blind get no
    pending samples."""
    return {"data": leaderboard(enter(request, slug, Scope.READ), params)}
