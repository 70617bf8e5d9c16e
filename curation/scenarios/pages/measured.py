"""Measured difficulty: how often the operators that tried a scenario solved it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Count
from django.http import QueryDict

from curation.projects.access import Access
from curation.samples.blind import refuse_told, reviews_blind
from curation.scenarios.filters import ScenarioFilter, ScenarioList
from curation.scenarios.models import KEPT, KEPT_DECIDED, TRIED, TRIED_DECIDED, Scenario
from curation.web.ids import IdList
from curation.web.text.figures import percent
from judging.statistics.rates import Interval, wilson


@dataclass(frozen=True, slots=True)
class Measured:
    """Rollouts of the bundle as it is, without those that the machine ended; `kept` of `tried` were kept. A round also
    counts the rollouts that the machine ended, which are `lost`."""

    tried: int = 0
    kept: int = 0
    lost: int = 0

    @property
    def rate(self) -> float | None:
        return self.kept / self.tried if self.tried else None

    @property
    def interval(self) -> Interval:
        return wilson(self.kept, self.tried)

    @property
    def solved_by(self) -> str:
        """`untried`, `everybody`, `nobody` or `some` of those who tried."""
        if not self.tried:
            return "untried"
        return {0: "nobody", self.tried: "everybody"}.get(self.kept, "some")

    @property
    def says(self) -> str:
        """The rate with its interval and number, as a list shows it."""
        lost = f", incomplete: the machine ended {self.lost:,}" if self.lost else ""
        if self.rate is None:
            return f"–{lost}"
        low, high = self.interval.low, self.interval.high
        return f"{percent(self.rate)} ({100 * low:.0f}–{percent(high)}), n {self.tried:,}{lost}"

    @property
    def warning(self) -> str:
        """A word for scenarios that tell no operator from another."""
        return {"everybody": "everybody solves it", "nobody": "nobody solves it"}.get(self.solved_by, "")


def measured_of(access: Access, rows: Sequence[Scenario]) -> Mapping[int, Measured]:
    """Scenario → its figures, for each of `rows`. Those who review blind get them without pending samples."""
    tried, kept = _counts(access)
    mine = Scenario.objects.of(access.project).filter(pk__in=IdList([row.pk for row in rows])).order_by()
    counted = mine.values("pk").annotate(tried=tried, kept=kept).values_list("pk", "tried", "kept")
    found = {pk: Measured(tried, kept) for pk, tried, kept in counted}
    return {row.pk: found.get(row.pk, Measured()) for row in rows}


def measured_by_model(access: Access, row: Scenario) -> dict[str, Measured]:
    """Operator's endpoint → its figures, as `measured_of` counts them."""
    tried, kept = _counts(access)
    mine = Scenario.objects.filter(pk=row.pk).order_by().values("trajectories__model")
    counted = mine.annotate(tried=tried, kept=kept).values_list("trajectories__model", "tried", "kept")
    return {model: Measured(tried, kept) for model, tried, kept in sorted(counted.filter(tried__gt=0))}


def refuse_measured(access: Access, wanted: ScenarioFilter, sort: str = "") -> None:
    """Refuse those who review blind a filter or an order by the kept rate: it counts pending samples too."""
    names = ["solved_by"] if wanted.solved_by else []
    refuse_told(access, *names, *(["sort"] if sort.endswith("kept_rate") else []))


def refuse_measured_query(access: Access, query: QueryDict) -> None:
    """`refuse_measured` of the query of a link to the list of scenarios."""
    params = ScenarioList.from_query(query)
    refuse_measured(access, params, params.order())


def _counts(access: Access) -> tuple[Count, Count]:
    return (TRIED_DECIDED, KEPT_DECIDED) if reviews_blind(access) else (TRIED, KEPT)
