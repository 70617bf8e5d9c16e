from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from curation.projects.access import Access
from curation.review.models import Action, Decision, DecisionQuerySet
from curation.web.lists.filters import Words, ids_of
from curation.web.lists.keyset import KeysetPage
from curation.web.lists.params import ListParams, named_list


@named_list("flags", page="flag-list")
class FlagList(ListParams):
    """Flags that nobody has undone, the newest first."""

    lookups: ClassVar[Mapping[str, str]] = {"sample": "sample_id", "reviewer": "reviewer__username"}

    state: Literal["open", "resolved", "all"] = "open"
    sample: Annotated[Words, ids_of("sample")] = ()
    reviewer: Words = Field(default=(), description="Usernames of those who flagged.")

    def rows(self, access: Access) -> KeysetPage[Decision]:
        rows = self.narrow(flags_of(access))
        if self.state != "all":
            rows = rows.filter(resolution__isnull=self.state == "open")
        return self.page(rows.select_related("reviewer", "sample", "resolution__resolved_by"))


def flags_of(access: Access) -> DecisionQuerySet:
    """Return the project's flags that are not undone. They are few, so they are found by their own index."""
    flags: DecisionQuerySet = Decision.objects.of(access.project).filter(action=Action.FLAG).not_undone()
    return flags
