"""The filter of the prompts list, for the page and the REST call, and its figures."""

from collections.abc import Sequence
from dataclasses import dataclass

from curation.duels.models import Exclusion, Prompt, PromptQuerySet, PullRequest
from curation.projects.models import Project
from curation.web.lists.params import words


@dataclass(frozen=True, slots=True)
class PromptFilter:
    """Comma list = OR, several entries = AND; None means either."""

    source: Sequence[str] = ()
    repo: Sequence[str] = ()
    instance_id: Sequence[str] = ()
    has_record: bool | None = None
    excluded: bool | None = None

    def apply(self, rows: PromptQuerySet) -> PromptQuerySet:
        for field in ("source", "repo", "instance_id"):
            for group in words(getattr(self, field)):
                rows = rows.filter(**{f"{field}__in": group})
        if self.has_record is not None:
            rows = rows.with_record() if self.has_record else rows.without_record()
        if self.excluded is not None:
            rows = rows.excluded() if self.excluded else rows.answerable()
        return rows


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
