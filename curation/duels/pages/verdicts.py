"""The verdicts on a duel: a row for each judge, both orders side by side, the answers by their names."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from django.utils.html import format_html

from curation.duels.models import Duel, Order, Verdict
from curation.duels.score.shown import seats_of
from curation.projects.settings.data import Words
from curation.web.text.markup import joined, visible, with_signs
from judging.panel.reasons import name_answers
from judging.panel.rubric import in_order

Json = dict[str, Any]


def judge_views(duel: Duel, verdicts: Iterable[Verdict], words: Words) -> list[Json]:
    """Return each judge's `name`, its `cells`, the asked `orders`, the `replies` in each of these, and the number of
    cells that flip, `flips`."""
    by_judge: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        by_judge[verdict.judge].append(verdict)
    return [_judge(name, by_judge[name], duel, words) for name in sorted(by_judge)]


def _judge(name: str, verdicts: list[Verdict], duel: Duel, words: Words) -> Json:
    seats = {order: seats_of(duel, order, words) for order in Order.values}
    asked = [order for order in Order.values if any(verdict.order == order for verdict in verdicts)]
    replies = [[verdict for verdict in verdicts if verdict.order == order] for order in asked]
    # As in the score: of several replies the last that parsed counts.
    last = [next((verdict for verdict in reversed(group) if verdict.parsed), None) for group in replies]
    names = in_order(name for verdict in last if verdict for name in verdict.dimensions)
    cells = [_cell(dimension, list(zip(asked, last, strict=True)), seats) for dimension in names]
    return {
        "name": name,
        "cells": cells,
        "orders": [f"{seats[order][0]} first" for order in asked],
        "replies": [[_reply(verdict, seats[verdict.order]) for verdict in group] for group in replies],
        "flips": sum(cell["flip"] for cell in cells),
    }


def _cell(dimension: str, said: list[tuple[str, Verdict | None]], seats: Mapping[str, tuple[str, str]]) -> Json:
    """One dimension with its winner in each order: challenger, king or reference, "draw", or "–" without a parsed
    reply. `flip`: both orders parsed and differ, which makes a draw."""
    winners = []
    for order, verdict in said:
        names = {0: "draw", 1: seats[order][0], 2: seats[order][1]}
        winner = verdict.dimensions.get(dimension) if verdict else None
        challenger = 2 if order == Order.KING_FIRST else 1
        tone = "good" if winner == challenger else "bad" if winner else "muted"
        name = "–" if winner is None else names.get(winner, "–")
        winners.append({"order": f"{seats[order][0]} first", "name": name, "tone": tone})
    known = {winner["name"] for winner in winners}
    return {"dimension": dimension, "winners": winners, "flip": len(known) > 1 and "–" not in known}


def _reply(verdict: Verdict, seats: tuple[str, str]) -> Json:
    """One reply; `reason` has the answers' names, with the judge's words as their titles."""
    if not verdict.parsed:
        return {"verdict": verdict, "order": f"{seats[0]} first", "reason": visible(verdict.reason)}
    pieces = (
        format_html('<span class="renamed" title="The judge wrote: {}">{}</span>', with_signs(piece.said), piece.text)
        if piece.said
        else visible(piece.text)
        for piece in name_answers(verdict.reason, *seats)
    )
    return {"verdict": verdict, "order": f"{seats[0]} first", "reason": joined(pieces)}
