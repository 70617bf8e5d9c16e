"""One page of the scenarios list, for the page and for REST."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from django.http import QueryDict
from pydantic import Field

from curation.projects.models import Project
from curation.scenarios.models import Scenario
from curation.scenarios.pages.filters import ScenarioFilter
from curation.web.lists.keyset import Page, paginate
from curation.web.lists.params import ListParams

Words = Annotated[list[str], Field(description="A comma list is an OR, repeated parameters are an AND.")]


class ScenarioListParams(ListParams):
    """The list's own parameters and the filter's; `ScenarioFilter` checks the latter."""

    sorts: ClassVar[Sequence[str]] = ("-id", "id", "name", "-name")

    full: bool = Field(False, description="Adds the bundles' texts and the gate's checks to each row.")
    id: Words = []
    name: Words = []
    status: Words = []
    axes: Words = []
    authored_by: Words = []
    run: Words = []
    text: str | None = None


# What of a URL is not the filter's.
OWN_PARAMETERS = frozenset({*ListParams.model_fields, "full"})


def scenario_page(project: Project, params: ScenarioListParams, query: QueryDict) -> Page[Scenario]:
    """Raises `Problem` (400) for a filter that is not understood."""
    wanted = ScenarioFilter.from_query(query, besides=OWN_PARAMETERS)
    rows = wanted.apply(Scenario.objects.of(project))
    return paginate(
        rows.with_bundle() if params.full else rows,
        sort=params.order(),
        cursor=params.cursor,
        limit=params.limit,
        count=params.count,
    )
