"""The lists of prompts, pull-request records and exclusions: what each can be filtered and sorted by; their counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field

from curation.duels.models import Exclusion, Prompt, PromptQuerySet, PullRequest
from curation.projects.models import Project
from curation.web.lists.filters import Words
from curation.web.lists.params import ListParams


class PromptList(ListParams):
    sorts: ClassVar[Sequence[str]] = ("-id", "id")
    lookups: ClassVar[Mapping[str, str]] = {"source": "source", "repo": "repo", "instance_id": "instance_id"}

    source: Words = ()
    repo: Words = ()
    instance_id: Words = ()
    has_record: bool | None = Field(None, description="Whether the instance's pull request is known.")
    excluded: bool | None = Field(None, description="Whether the instance is excluded.")

    def rows(self, project: Project) -> PromptQuerySet:
        rows = self.narrow(Prompt.objects.of(project))
        if self.has_record is not None:
            rows = rows.with_record() if self.has_record else rows.without_record()
        if self.excluded is not None:
            rows = rows.excluded() if self.excluded else rows.answerable()
        return rows


class PullRequestList(ListParams):
    sorts: ClassVar[Sequence[str]] = ("-id", "id")
    lookups: ClassVar[Mapping[str, str]] = {"repo": "repo", "instance_id": "instance_id"}

    repo: Words = ()
    instance_id: Words = ()


class ExclusionList(ListParams):
    sorts: ClassVar[Sequence[str]] = ("-id", "id")


@dataclass(frozen=True, slots=True)
class PromptFigures:
    prompts: int
    with_record: int
    excluded: int
    records: int
    exclusions: int


def prompt_figures(project: Project) -> PromptFigures:
    """Return exact counts."""
    rows = Prompt.objects.of(project)
    return PromptFigures(
        prompts=rows.count(),
        with_record=rows.with_record().count(),
        excluded=rows.excluded().count(),
        records=PullRequest.objects.filter(project=project).count(),
        exclusions=Exclusion.objects.filter(project=project).count(),
    )
