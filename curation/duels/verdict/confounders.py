"""Confounders: causes of a preference other than the quality of the answers."""

from collections.abc import Mapping, Sequence

from django.db.models import Min

from curation.duels.models import Duel, Verdict
from curation.web.ids import IdList
from judging.answers.facts import style_of

CHUNK = 1000
Styles = tuple[Mapping[str, int], Mapping[str, int]]


def hours_of(verdicts: Sequence[int]) -> dict[int, int]:
    """Return the hour (UTC) of each duel's first verdict."""
    read = Verdict.objects.filter(pk__in=IdList(list(verdicts))).order_by().values_list("duel_id")
    return {pk: at.hour for pk, at in read.annotate(at=Min("created_at"))}


def styles_of(duels: Sequence[int]) -> dict[int, Styles | None]:
    """Return the marks of each duel's answers, the opponent's and the challenger's. A reference is not compared: it has
    the form of its source."""
    found = Duel.objects.filter(pk__in=IdList(list(duels)))
    texts = found.values_list("pk", "king__text__text", "challenger__text__text")
    return {
        pk: None if king is None else (style_of(king)._asdict(), style_of(challenger)._asdict())
        for pk, king, challenger in texts.iterator(CHUNK)
    }
