from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

from django.db.models import QuerySet

from curation.duels.models import Duel, Prompt, PromptQuerySet
from curation.duels.prompts.filters import PromptFilter
from curation.projects.models import Project
from curation.runs.kinds import Json
from curation.samples.list.filters import SampleFilter
from curation.samples.models import Sample

PATH = "params.filter"


class AskedFilter(PromptFilter, SampleFilter):
    """The prompts of a run: by themselves, as their list is filtered, or by the samples of their duels.

    A form offers the fields of prompts. Scripts and earlier runs may have others.
    """

    labels: ClassVar[Mapping[str, str]] = {**SampleFilter.labels, **PromptFilter.labels}
    choices: ClassVar[Mapping[str, Sequence[tuple[str, str]]]] = {**SampleFilter.choices, **PromptFilter.choices}

    @classmethod
    def offered(cls) -> Collection[str]:
        return list(PromptFilter.labels)


def prompts_in(project: Project, given: Json) -> PromptQuerySet:
    """Return the project's matching prompts that are not excluded. Scores and decisions are those of their samples."""
    wanted = AskedFilter.from_json(given, path=PATH)
    prompts = wanted.of_prompts(Prompt.objects.of(project).answerable())
    rest = {name: value for name, value in given.items() if name not in PromptFilter.model_fields}
    return prompts.filter(duels__sample__in=_samples(project, rest)).distinct() if rest else prompts


def duels_in(project: Project, given: Json) -> QuerySet[Duel]:
    """Return the project's duels whose prompts are not excluded and whose samples match."""
    duels = Duel.objects.filter(project=project, prompt__in=Prompt.objects.of(project).answerable())
    return duels.filter(sample__in=_samples(project, given)) if given else duels


def check_filter(given: Json) -> None:
    """Raise `Invalid` for a key or value that is not part of the filter of prompts and their samples."""
    AskedFilter.from_json(given, path=PATH)


def check_samples(given: Json) -> None:
    """Raise `Invalid` for a key or value that is not part of the samples' filter."""
    SampleFilter.from_json(given, path=PATH)


def _samples(project: Project, given: Json) -> QuerySet[Sample]:
    return SampleFilter.from_json(given, path=PATH).apply(Sample.objects.of(project))
