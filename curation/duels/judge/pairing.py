"""Pair each challenger's answer with the king's to the same prompt and sample, or with the reference."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from django.db.models import Q, QuerySet

from curation.duels.models import Answer, Duel, Opponent, Prompt, Side
from curation.duels.params import JudgeParams
from curation.projects.models import Project

CHUNK = 1000
SampleKey = tuple[int, int]


# The condition for the answers of a side that are paired, of which the newest one to each prompt and sample counts.
Entrants = Callable[[Side], Q]


def entrants_named(params: JudgeParams) -> Entrants:
    """Select the answers of the models that the parameters name, or those of any model."""
    names = {Side.KING: params.king_model, Side.CHALLENGER: params.challenger_model}
    return lambda side: Q(model=names[side]) if names[side] else Q()


def pair(*, project: Project, prompts: QuerySet[Prompt], entrants: Entrants, mode: int) -> Iterator[int]:
    """Yield the id of each duel of the prompts' answers, prompt by prompt. Create missing ones."""
    challenging, defending = entrants(Side.CHALLENGER), entrants(Side.KING) if mode == 2 else None
    ids = iter(prompts.order_by("id").values_list("pk", flat=True).iterator(CHUNK))
    while chunk := list(islice(ids, CHUNK)):
        challengers = _newest(chunk, Side.CHALLENGER, challenging)
        kings = {} if defending is None else _newest(chunk, Side.KING, defending)
        yield from _duel_ids(project, challengers, kings, mode)


def _duel_ids(project: Project, challengers: dict[SampleKey, int], kings: dict[SampleKey, int], mode: int) -> list[int]:
    pairs = [
        (key[0], challenger, kings.get(key))
        for key, challenger in sorted(challengers.items())
        if mode == 1 or key in kings
    ]
    opponent = Opponent.KING if mode == 2 else Opponent.REFERENCE
    if opponent == Opponent.REFERENCE:
        # An imported answer without an opponent is the reference itself.
        alone = Duel.objects.filter(challenger_id__in=challengers.values(), opponent=Opponent.NONE)
        own = set(alone.values_list("challenger_id", flat=True))
        pairs = [entry for entry in pairs if entry[1] not in own]
    Duel.objects.bulk_create(
        [
            Duel(project=project, prompt_id=prompt, challenger_id=challenger, king_id=king, opponent=opponent)
            for prompt, challenger, king in pairs
        ],
        ignore_conflicts=True,
    )
    known = Duel.objects.filter(challenger_id__in=[challenger for _, challenger, _ in pairs], opponent=opponent)
    rows = known.values_list("challenger_id", "king_id", "pk")
    by_pair: dict[tuple[int, int | None], int] = {(challenger, king): pk for challenger, king, pk in rows}
    return [by_pair[challenger, king] for _, challenger, king in pairs]


def _newest(prompt_ids: Sequence[int], side: Side, wanted: Q) -> dict[SampleKey, int]:
    """Return the newest accepted answer of each prompt and sample index."""
    rows = Answer.objects.filter(wanted, prompt_id__in=prompt_ids, side=side, refusal="")
    return {(row[0], row[1]): row[2] for row in rows.order_by("id").values_list("prompt_id", "sample_index", "pk")}
