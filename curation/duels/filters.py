"""The prompts and duels of a run's `filter`."""

from django.db.models import QuerySet

from curation.duels.models import Duel, Prompt, PromptQuerySet
from curation.projects.models import Project
from curation.runs.kinds import Json
from curation.samples.list.filters import SampleFilter
from curation.samples.models import Sample

# Fields of a prompt; the filter's other fields are those of samples.
PROMPT_FIELDS = ("source", "repo", "instance_id")


def prompts_in(project: Project, given: Json) -> PromptQuerySet:
    """Return the project's matching prompts that are not excluded. Scores and decisions are those of their samples."""
    own = {key: value for key, value in given.items() if key in PROMPT_FIELDS}
    rest = {key: value for key, value in given.items() if key not in PROMPT_FIELDS}
    prompts = Prompt.objects.of(project).answerable()
    fields = SampleFilter.from_json(own, path="params.filter")
    for key in own:
        for group in getattr(fields, key):
            prompts = prompts.filter(**{f"{key}__in": group})
    if rest:
        prompts = prompts.filter(duels__sample__in=_samples(project, rest)).distinct()
    return prompts


def duels_in(project: Project, given: Json) -> QuerySet[Duel]:
    """Return the project's duels whose prompts are not excluded and whose samples match."""
    duels = Duel.objects.filter(project=project, prompt__in=Prompt.objects.of(project).answerable())
    return duels.filter(sample__in=_samples(project, given)) if given else duels


def check_filter(given: Json) -> None:
    """Raise `Invalid` for a key or value that is not part of the samples' filter."""
    SampleFilter.from_json(given, path="params.filter")


def _samples(project: Project, given: Json) -> QuerySet[Sample]:
    return SampleFilter.from_json(given, path="params.filter").apply(Sample.objects.of(project))
