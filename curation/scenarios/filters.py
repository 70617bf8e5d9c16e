"""The filter of scenarios: of the page, the REST list, runs and downloads."""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Annotated, ClassVar

from django.db.models import Q
from django.http import QueryDict
from pydantic import ConfigDict, Field, field_validator

from curation.projects.models import Project
from curation.scenarios.models import UNTRIED, Family, Scenario, ScenarioAxis, ScenarioQuerySet, ScenarioStatus
from curation.web.lists.filters import Axes, Groups, ListParams, RowFilter, Words, ids_of, named_list, one_of

SOLVED_BY = ("everybody", "nobody", "some", "untried")


class ScenarioFilter(RowFilter):
    """Which scenarios; an empty filter matches all. Unknown fields are refused."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={"examples": [{"status": "admitted", "axes": "task=cleanup,task=archive"}]},
    )
    lookups: ClassVar[Mapping[str, str]] = {
        **{
            "id": "pk",
            "name": "name",
            "status": "status",
            "family": "family",
            "authored_by": "authored_by",
            "run": "run_id",
            "group": "group",
        }
    }

    labels: ClassVar[Mapping[str, str]] = {
        "text": "Name or title",
        "status": "Status",
        "family": "Family",
        "axes": "Axes",
        "solved_by": "Solved by",
        "name": "Name",
        "authored_by": "Authored by",
        "run": "Run",
        "group": "Copies of",
        "id": "Scenario",
    }
    choices: ClassVar[Mapping[str, Sequence[tuple[str, str]]]] = {
        "status": ScenarioStatus.choices,
        "family": Family.choices,
        "solved_by": (
            ("everybody", "everybody solved it"),
            ("some", "some solved it"),
            ("nobody", "nobody solved it"),
            ("untried", "nobody tried it"),
        ),
    }

    id: Annotated[Words, ids_of("scenario")] = ()
    name: Words = Field(default=(), description="Names, exactly.")
    status: Annotated[Words, one_of(ScenarioStatus.values)] = ()
    family: Annotated[Words, one_of(Family.values)] = ()
    axes: Axes = Field(default=(), description="`axis=value`.")
    authored_by: Words = ()
    run: Annotated[Words, ids_of("run")] = Field(default=(), description="Ids of the runs that made them.")
    group: Annotated[Words, ids_of("scenario")] = Field(default=(), description="Groups of copies, as rows name them.")
    solved_by: Annotated[Words, one_of(SOLVED_BY)] = Field(
        default=(),
        description="By how many of the rollouts through the bundle as it is: everybody, nobody, some, untried.",
    )
    text: str = Field(default="", max_length=200, description="A part of the name or the title.")

    @field_validator("text")
    @classmethod
    def storable(cls, text: str) -> str:
        if "\0" in text:
            raise ValueError("it contains a NUL character")
        return text

    @classmethod
    def of_one(cls, pk: int) -> "ScenarioFilter":
        return cls.from_json({"id": str(pk)})

    @classmethod
    def from_text(cls, query: str) -> "ScenarioFilter":
        """The filter of a query string, as `to_query` returns it."""
        return cls.from_query(QueryDict(query))

    def apply(self, rows: ScenarioQuerySet) -> ScenarioQuerySet:
        """The rows that match; `rows` come from `Scenario.objects.of(project)`."""
        rows = self.narrow(rows)
        if self.text:
            rows = rows.filter(Q(name__icontains=self.text) | Q(title__icontains=self.text))
        for group in self.solved_by:
            rows = rows.filter(pk__in=Scenario.objects.with_tries().filter(_solved_by(group)).values("pk"))
        return _with_axes(rows, self.axes)


def _solved_by(group: Sequence[str]) -> Q:
    conditions = {
        "untried": Q(kept_rate=UNTRIED),
        "nobody": Q(kept_rate=0.0),
        "everybody": Q(kept_rate=1.0),
        "some": Q(kept_rate__gt=0.0, kept_rate__lt=1.0),
    }
    return reduce(or_, (conditions[word] for word in group))


def _with_axes(rows: ScenarioQuerySet, groups: Groups) -> ScenarioQuerySet:
    for group in groups:
        pairs = (word.split("=", 1) for word in group)
        any_of = reduce(or_, (Q(axis=axis, value=value) for axis, value in pairs))
        rows = rows.filter(pk__in=ScenarioAxis.objects.filter(any_of).values("scenario"))
    return rows


@named_list("scenarios", page="scenario-list")
class ScenarioList(ScenarioFilter, ListParams):
    sorts: ClassVar[Sequence[str]] = ("-id", "id", "name", "-name", "kept_rate", "-kept_rate")
    beside: ClassVar[frozenset[str]] = ListParams.beside | {"full"}

    full: bool = Field(default=False, description="Adds the bundles' texts and the gate's checks to each row.")

    def rows(self, project: Project) -> ScenarioQuerySet:
        rows = self.apply(Scenario.objects.of(project))
        rows = rows.with_tries() if self.order().endswith("kept_rate") else rows
        return rows.with_bundle() if self.full else rows
