"""Which prompts and duels a run's `filter` means."""

from django.db.models import QuerySet

from curation.duels.models import Duel, Prompt, PromptQuerySet
from curation.projects.models import Project
from curation.runs.kinds import Json
from curation.samples.list.filters import SampleFilter
from curation.samples.models import Sample

# What a prompt knows of itself; every other filter is about its samples.
OF_PROMPTS = ("source", "repo", "instance_id")


def prompts_in(project: Project, given: Json) -> PromptQuerySet:
    """The project's prompts that are not excluded and match; filters of scores and decisions go by their samples."""
    own = {key: value for key, value in given.items() if key in OF_PROMPTS}
    rest = {key: value for key, value in given.items() if key not in OF_PROMPTS}
    prompts = Prompt.objects.of(project).answerable()
    words = SampleFilter.from_json(own, path="params.filter")
    for key in own:
        for group in getattr(words, key):
            prompts = prompts.filter(**{f"{key}__in": group})
    if rest:
        prompts = prompts.filter(duels__sample__in=_samples(project, rest)).distinct()
    return prompts


def duels_in(project: Project, given: Json) -> QuerySet[Duel]:
    """The project's duels whose prompts are not excluded and whose samples match."""
    duels = Duel.objects.filter(project=project, prompt__in=Prompt.objects.of(project).answerable())
    return duels.filter(sample__in=_samples(project, given)) if given else duels


def check_filter(given: Json) -> None:
    """Raises `Invalid` for what the filter does not know; every key is one of the samples' filter."""
    SampleFilter.from_json(given, path="params.filter")


def _samples(project: Project, given: Json) -> QuerySet[Sample]:
    return SampleFilter.from_json(given, path="params.filter").apply(Sample.objects.of(project))
