"""Filters, sort orders and counts of the lists of prompts, pull-request records and exclusions."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pydantic import Field

from curation.duels.models import Exclusion, Prompt, PromptQuerySet, PullRequest, PullRequestQuerySet
from curation.projects.models import Project
from curation.web.lists.filters import ListParams, RowFilter, Words, named_list
from curation.web.lists.keyset import KeysetPage


class PromptFilter(RowFilter):
    """Which prompts; an empty filter matches all."""

    lookups: ClassVar[Mapping[str, str]] = {"source": "source", "repo": "repo", "instance_id": "instance_id"}
    labels: ClassVar[Mapping[str, str]] = {
        "source": "Source",
        "repo": "Repository",
        "instance_id": "Instance",
        "has_record": "Record",
        "doubtful": "Doubtful",
    }
    choices: ClassVar[Mapping[str, Sequence[tuple[str, str]]]] = {
        "has_record": (("true", "With record"), ("false", "Without record")),
        "doubtful": (("true", "Doubtful record"), ("false", "No doubt")),
    }

    source: Words = ()
    repo: Words = ()
    instance_id: Words = ()
    has_record: bool | None = Field(None, description="Whether the instance's pull request is known.")
    doubtful: bool | None = Field(None, description="Whether the record may belong to another task.")

    def of_prompts(self, prompts: PromptQuerySet) -> PromptQuerySet:
        return self.by_record(PromptFilter.narrow(self, prompts))

    def by_record(self, rows: PromptQuerySet) -> PromptQuerySet:
        if self.has_record is not None:
            rows = rows.exclude(pk__in=rows.without_record()) if self.has_record else rows.without_record()
        if self.doubtful is not None:
            found = rows.with_doubtful_record()
            rows = found if self.doubtful else rows.exclude(pk__in=found)
        return rows


@named_list("prompts", page="prompt-list")
class PromptList(PromptFilter, ListParams):
    labels: ClassVar[Mapping[str, str]] = {**PromptFilter.labels, "excluded": "Excluded"}
    choices: ClassVar[Mapping[str, Sequence[tuple[str, str]]]] = {
        **PromptFilter.choices,
        "excluded": (("true", "Excluded"), ("false", "Not excluded")),
    }

    excluded: bool | None = Field(None, description="Whether the instance is excluded.")

    def shown(self, project: Project) -> KeysetPage[Prompt]:
        rows = self.by_record(Prompt.objects.of(project))
        if self.excluded is not None:
            rows = rows.excluded() if self.excluded else rows.answerable()
        return self.read(rows, columns=PromptQuerySet.for_list)


class PullRequestList(ListParams):
    lookups: ClassVar[Mapping[str, str]] = {"repo": "repo", "instance_id": "instance_id"}

    repo: Words = ()
    instance_id: Words = ()
    doubtful: bool | None = Field(None, description="Whether it may belong to another task, and nobody cleared it.")

    def rows(self, project: Project) -> PullRequestQuerySet:
        rows = self.narrow(PullRequest.objects.of(project))
        if self.doubtful is None:
            return rows
        return rows.doubtful() if self.doubtful else rows.usable()


named_list("exclusions", page="exclusion-list")(ListParams)


def prompt_figures(project: Project) -> dict[str, int]:
    """Return exact counts."""
    rows, records = Prompt.objects.of(project), PullRequest.objects.of(project)
    return {
        "prompts": rows.count(),
        "with_record": rows.with_record().count(),
        "excluded": rows.excluded().count(),
        "records": records.count(),
        "doubtful": records.doubtful().count(),
        "exclusions": Exclusion.objects.filter(project=project).count(),
    }
