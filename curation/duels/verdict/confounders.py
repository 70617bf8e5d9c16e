"""Confounders: causes of a preference other than the quality of the answers."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from django.db.models import Min

from curation.duels.models import Duel, Verdict
from curation.web.ids import IdList
from judging.answers.facts import style_of

CHUNK = 1000


class Confounders(NamedTuple):
    """`style` counts marks of the opponent's and the challenger's answer; `hour` (UTC) is that of the first verdict."""

    hour: int | None
    style: tuple[Mapping[str, int], Mapping[str, int]] | None


def confounders_of(duels: Sequence[int], verdicts: Sequence[int]) -> dict[int, Confounders]:
    """Return the confounders by duel. A reference is not compared: it has the form of its source."""
    read = Verdict.objects.filter(pk__in=IdList(list(verdicts))).order_by().values_list("duel_id")
    hours = {pk: at.hour for pk, at in read.annotate(at=Min("created_at"))}
    found = {}
    texts = Duel.objects.filter(pk__in=IdList(list(duels))).values_list(
        "pk", "king__text__text", "challenger__text__text"
    )
    for pk, king, challenger in texts.iterator(CHUNK):
        style = None if king is None else (style_of(king)._asdict(), style_of(challenger)._asdict())
        found[pk] = Confounders(hours.get(pk), style)
    return found
