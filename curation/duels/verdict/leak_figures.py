"""How far a run's challenger answers were checked for leaks, in figures and in words."""

from collections.abc import Iterator
from decimal import Decimal

from django.db.models import Count, Q, QuerySet, Sum

from curation.duels.answers.leaks import NONE, UNPARSED
from curation.duels.models import READ, Answer, Duel, Side
from curation.runs.calls.targets import run_instructions
from curation.runs.kinds import Json
from curation.runs.models import Call, Item, ItemState, Run
from curation.web.ids import IdList
from curation.web.text.figures import counted, exact_money, money
from judging.leaks.reader import READ as INSTRUCTIONS

CHUNK = 1000
LINT_ONLY, INCOMPLETE, NOT_COMPARED, NO_ANSWERS = "lint only", "incomplete", "not compared", "no answers"


def leak_results(run: Run) -> Json:
    """Return `leak_check`, how far the answers were checked, and `leak_findings`, the figures.

    `leak_check` is `read` where a model read each answer that the lint passed, `lint only` where none was asked,
    `incomplete` where some of them were not read or not compared, `not compared` where no answer has a record, and
    `no answers` without any.
    """
    figures = _figures(run)
    return {"leak_check": _state(figures), "leak_findings": figures}


def _figures(run: Run) -> Json:
    """Count answers: `lint` and `reader` with findings, `read`, `unread` by no model although the lint passed them,
    `unparsed` of these, `not_compared` with any record. `dropped` counts findings without their quotes. `cost` is in
    dollars, None if the cost of a call is unknown; `reader_calls` counts recorded calls.
    """
    counts = ("answers", "lint", "read", "reader", "unread", UNPARSED, "not_compared", "dropped")
    figures: Json = dict.fromkeys(counts, 0)
    columns = ("leak_flag", "reader_flag", "leak_score", "reading")
    for flagged, found, score, reading in _answers(run).values_list(*columns).iterator(CHUNK):
        read = reading.get("state") == READ
        figures["answers"] += 1
        figures["lint"] += flagged
        figures["reader"] += found
        figures["read"] += read
        figures["not_compared"] += score is None
        figures["unread"] += not (flagged or read or score is None)
        figures[UNPARSED] += reading.get("state") == UNPARSED
        figures["dropped"] += reading.get("dropped", 0)
    name = run.params.get("leak_reader") or run.settings.generation.leak_reader or NONE
    if name != NONE:
        digest = run_instructions(run, INSTRUCTIONS).sha256
        calls = Call.objects.filter(run=run, endpoint_name=name, instructions_hash=digest)
        asked = calls.aggregate(n=Count("id"), unknown=Count("id", filter=Q(cost=None)), cost=Sum("cost"))
        known = None if asked["unknown"] else exact_money(Decimal(asked["cost"] or 0))
        figures |= {"reader_model": name, "reader_calls": asked["n"], "cost": known}
    return figures


def _answers(run: Run) -> QuerySet[Answer]:
    """Return the challenger answers of the run's duels; of a run without duels, those that it made or had read."""
    if run.kind != Side.CHALLENGER:
        return Answer.objects.filter(pk__in=Duel.objects.filter(scores__run=run).values("challenger"))
    done = Item.objects.filter(run=run, stage=Side.CHALLENGER.value, state=ItemState.DONE)
    results = done.values_list("result", flat=True).iterator(CHUNK)
    return Answer.objects.filter(pk__in=IdList([result["answer"] for result in results if "answer" in result]))


def _state(figures: Json) -> str:
    if not figures["answers"]:
        return NO_ANSWERS
    if figures["not_compared"] == figures["answers"]:
        return NOT_COMPARED
    if not figures["unread"] and not figures["not_compared"]:
        return READ
    asked = figures["read"] or figures.get("reader_model")
    return INCOMPLETE if asked or figures["not_compared"] else LINT_ONLY


def leak_words(result: Json) -> str:
    """Return how far the run's answers were checked, in a few words; empty where the run checks none."""
    figures, state = result.get("leak_findings") or {}, result.get("leak_check")
    if state == NO_ANSWERS:
        return "leaks: not checked, because the challenger has no answers"
    if state == INCOMPLETE:
        answers = f"{figures['answers']:,}"
        missing = [("not read", figures["unread"]), ("without a record", figures["not_compared"])]
        return f"leaks: incomplete, {' and '.join(f'{n:,} of {answers} {words}' for words, n in missing if n)}"
    return f"leaks: {state}" if state else ""


def leak_lines(result: Json) -> Iterator[str]:
    figures = result.get("leak_findings") or {}
    if words := leak_words(result):
        yield f"{words[0].upper()}{words[1:]}."
    if compared := figures.get("answers", 0) - figures.get("not_compared", 0):
        yield f"Leak lint: flagged {figures['lint']:,} of {counted(compared, 'challenger answer')}."
    if name := figures.get("reader_model"):
        yield (
            f"Second reader {name}: flagged {figures['reader']:,} of {counted(figures['read'], 'answer')}; "
            f"{counted(figures[UNPARSED], 'reply')} could not be parsed; not counted, because the quote is missing: "
            f"{counted(figures['dropped'], 'finding')}. {counted(figures['reader_calls'], 'call')}, "
            f"cost {money(figures['cost'])}."
        )
