"""Rivals: answers that a person rejected, of the prompts of approved ones. They make preferences without a duel."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from django.db.models import Exists, OuterRef, Q

from curation.duels.models import Duel
from curation.review.imports.write import MODEL
from curation.samples.models import SampleStatus
from curation.web.ids import IdList, KeyList

# A project's prompt by its id; of an imported answer by the history that it follows, because each row has a prompt of
# its own.
PromptKey = tuple[int, int | str]


def has_approved_rival() -> Exists:
    """Return the condition that an approved sample answers the prompt of a sample as well."""
    own = Duel.objects.filter(sample=OuterRef("pk"))
    approved = Duel.objects.filter(sample__status=SampleStatus.APPROVED, project=OuterRef("project"))
    same = approved.filter(prompt=OuterRef("prompt"))
    imported = approved.filter(challenger__model=MODEL, challenger__fingerprint=OuterRef("challenger__fingerprint"))
    return Exists(own.filter(Exists(same) | (Q(challenger__model=MODEL) & Exists(imported))))


def rejected_rivals(sample_ids: Sequence[int]) -> Mapping[int, Sequence[int]]:
    """Return the rejected samples that answer the prompt of each sample, by id. Three queries at most."""
    return _answering_the_same(sample_ids, Q(sample__status=SampleStatus.REJECTED))


def answers_of_same_prompts(sample_ids: Sequence[int]) -> set[int]:
    found = _answering_the_same(sample_ids, Q(sample__isnull=False))
    return {*sample_ids, *(pk for others in found.values() for pk in others)}


def _answering_the_same(sample_ids: Sequence[int], which: Q) -> dict[int, list[int]]:
    own = _answering(Q(sample_id__in=IdList(sample_ids)))
    if not own:
        return {}
    ids = sorted({prompt for _, (_, prompt) in own if isinstance(prompt, int)})
    keys = sorted({prompt for _, (_, prompt) in own if isinstance(prompt, str)})
    # Not as one condition: an index finds each of them, and none finds both.
    same = _answering(Q(prompt_id__in=IdList(ids)) & which) if ids else []
    if keys:
        same += _answering(Q(challenger__model=MODEL, challenger__fingerprint__in=KeyList(keys)) & which)
    others: dict[PromptKey, list[int]] = defaultdict(list)
    for sample_id, prompt in same:
        others[prompt].append(sample_id)
    found = {sample_id: [pk for pk in others[prompt] if pk != sample_id] for sample_id, prompt in own}
    return {pk: rivals for pk, rivals in found.items() if rivals}


def _answering(which: Q) -> list[tuple[int, PromptKey]]:
    duels = Duel.objects.filter(which).order_by("sample_id")
    columns = duels.values_list("sample_id", "project_id", "prompt_id", "challenger__model", "challenger__fingerprint")
    return [
        (sample_id, (project, fingerprint if model == MODEL else prompt))
        for sample_id, project, prompt, model, fingerprint in columns
    ]
