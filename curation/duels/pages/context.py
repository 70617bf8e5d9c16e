"""The context of a duel's page: rendered answers with leak spans, verdicts by judge, the history."""

from collections.abc import Mapping
from typing import Any

from curation.duels.judge.controls import sides_of
from curation.duels.models import READ, Answer, Duel, Opponent, Side
from curation.duels.pages.verdicts import judge_views
from curation.duels.prompts.queries import history_of
from curation.duels.score.shown import imported, of_score, opponent_word, shown, verdicts_of
from curation.projects.settings.data import Data, Words
from curation.web.ids import find
from curation.web.problems import NotFound
from curation.web.text.figures import counted
from curation.web.text.markup import Span, render_text
from judging.leaks.lint import PLAIN_COPIES, RULES
from judging.panel.rubric import in_order
from judging.planted_faults import ControlKind

Json = dict[str, Any]


def duel_of_run(duel: Duel, run: str) -> Duel:
    """Let the duel show the score of this run. `NotFound` if the run did not score it."""
    rows = duel.project.runs.filter(deleting_at=None)
    found = find(rows, run, "run")
    scored = Duel.objects.filter(pk=duel.pk).with_texts().scored_by(found).first()
    if scored is None:
        raise NotFound(f"Run {found.pk} did not score this duel. Choose another run.")
    return scored


def duel_view(duel: Duel) -> Json:
    """Return the context of a duel's page. `control` names the right verdict of a control duel, and why it is known; ""
    for any other duel. `both_orders`: the panel of the shown score read both answers in both places. Needs
    `with_texts()`."""
    answer, found, data = duel.challenger, shown(duel), duel.project.settings.data
    judges = judge_views(duel, verdicts_of(duel, found.row), data.words)
    challenger = _answer_view(data.words.candidate, answer, _leak_spans(answer), data)
    if duel.control and duel.king is None:
        opponent, challenger = _control_views(duel, data)
    elif duel.king is not None:
        opponent = _answer_view(data.words.opponent, duel.king, (), data)
    elif duel.opponent == Opponent.NONE:
        opponent = _text_view("No opponent", "", "imported without another answer")
    else:
        opponent = _text_view("Reference", duel.reference_text)
    return {
        "control": _control_words(duel, data.words),
        "opponent": opponent,
        "challenger": challenger,
        "judges": judges,
        "metrics": [(name, found.metrics[name]) for name in in_order(found.metrics)],
        "dimensions": in_order(cell["dimension"] for judge in judges for cell in judge["cells"]),
        "leaks": list(dict.fromkeys(map(_leak_text, [*answer.leak_spans, *answer.reading.get("findings", ())]))),
        "history": history_of(duel.prompt).opening(),
        "shown": found,
        "both_orders": found.row is not None and len(found.row.panel.orders) == 2,
        "run_id": found.row.run_id if found.row else duel.run_id,
        "scores": [of_score(row, duel) for row in duel.scores.all()],
        "imported": imported(duel) if found.row is None else None,
    }


def _control_views(duel: Duel, data: Data) -> tuple[Json, Json]:
    """Both sides of a control duel of one answer, which has a planted fault or a bribe on one side."""
    added = "a bribe for the judge" if duel.control == ControlKind.BRIBE else "a planted fault"
    titles = (opponent_word(duel.opponent, data.words), data.words.candidate)
    king, challenger = (
        _text_view(f"{title} with {added}", text)
        if duel.planted and text == duel.planted
        else _answer_view(title, duel.challenger, (), data)
        for title, text in zip(titles, sides_of(duel), strict=True)
    )
    return king, challenger


def _control_words(duel: Duel, words: Words) -> str:
    if duel.control == ControlKind.SAME:
        return "Control duel: both answers are the same, so the right verdict is a draw."
    if duel.control == ControlKind.FAULT:
        return "Control duel: one answer has a planted fault, so the other one is better."
    if duel.control == ControlKind.BRIBE:
        return "Control duel: both answers are the same, but one has a bribe for the judge, which must not win by it."
    if duel.control == ControlKind.PEOPLE:
        named = {1: f"the {words.candidate.lower()}", -1: f"the {words.opponent.lower()}", 0: "a draw"}
        outcome = named[duel.expected or 0]
        return f"Control duel: people decided for {outcome}."
    return ""


def _leak_text(span: Mapping[str, str]) -> str:
    """Return a finding as text: the words, the place in the record, and the rule if it is not a plain copy."""
    found = f"{span['token']} (in the {span['place']})"
    if span["kind"] in PLAIN_COPIES:
        return found
    reveals = f" · {span['reveals']}" if span.get("reveals") else ""
    return f"{RULES.get(span['kind'], span['kind'])}: {found}{reveals}"


def _leak_spans(answer: Answer) -> tuple[Span, ...]:
    return tuple((span["start"], span["end"]) for span in [*answer.leak_spans, *answer.reading.get("findings", ())])


def _leak_check(answer: Answer) -> tuple[str, ...]:
    """Name the leak checks that a challenger's answer lacks."""
    if answer.side != Side.CHALLENGER or answer.leak_flag or answer.reading.get("state") == READ:
        return ()
    return ("without a record to check for leaks" if answer.leak_score is None else "not read for leaks in meaning",)


def _facts(answer: Answer, data: Data) -> tuple[str, ...]:
    if not data.is_agent:
        return (counted(answer.tokens, "token"), *_leak_check(answer))
    return (
        "THOUGHT" if answer.has_thought else "no THOUGHT",
        counted(answer.blocks, "bash block"),
        counted(answer.commands, "command"),
        answer.action_style or "other",
        counted(answer.tokens, "token"),
        *_leak_check(answer),
    )


def _answer_view(title: str, answer: Answer, spans: tuple[Span, ...], data: Data) -> Json:
    """One answer. `facts` are texts such as "1 command"."""
    html = render_text(answer.text.text, spans)
    return {"title": title, "model": answer.model, "html": html, "row": answer, "facts": _facts(answer, data)}


def _text_view(title: str, text: str, model: str = "") -> Json:
    """A text that no model of the project answered."""
    return {"title": title, "model": model, "html": render_text(text), "row": None, "facts": ()}
