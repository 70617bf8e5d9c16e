"""The context of a duel's page: rendered answers with leak spans, verdicts by judge, the history."""

from dataclasses import dataclass
from itertools import groupby

from django.utils.safestring import SafeString

from curation.duels.models import Answer, Duel, Order, Verdict
from curation.web.text.chat import Chat
from curation.web.text.markup import Span, render_text
from curation.web.text.transcript import Turn
from judging.panel.rubric import DIMENSIONS


@dataclass(frozen=True, slots=True)
class AnswerView:
    """One answer; `answer` is None for the reference. `facts` are words such as "1 command"."""

    title: str
    model: str
    html: SafeString
    text: str
    answer: Answer | None
    facts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """What a judge said of one dimension in one order, from the challenger's side."""

    word: str
    tone: str


@dataclass(frozen=True, slots=True)
class VerdictView:
    verdict: Verdict
    order: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class JudgeView:
    name: str
    verdicts: tuple[VerdictView, ...]


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    value: float


@dataclass(frozen=True, slots=True)
class DuelView:
    opponent: AnswerView
    candidate: AnswerView
    judges: tuple[JudgeView, ...]
    metrics: tuple[Metric, ...]
    dimensions: tuple[str, ...]
    leaks: tuple[str, ...]
    turns: list[Turn]


def duel_view(duel: Duel) -> DuelView:
    """Needs `with_texts()`."""
    challenger = duel.challenger
    if duel.king is not None:
        opponent = _answer_view("King", duel.king, ())
    else:
        text = duel.reference_text
        opponent = AnswerView("Reference", "the source's own turn", render_text(text), text, None, ())
    return DuelView(
        opponent=opponent,
        candidate=_answer_view("Challenger", challenger, leak_marks(challenger)),
        judges=judge_views(duel),
        metrics=tuple(Metric(name, duel.metrics[name]) for name in DIMENSIONS if name in duel.metrics),
        dimensions=DIMENSIONS,
        leaks=tuple(dict.fromkeys(f"{span['token']} (in the {span['place']})" for span in challenger.leak_spans)),
        turns=Chat(duel.prompt.text.history).complete(),
    )


def leak_marks(answer: Answer) -> tuple[Span, ...]:
    return tuple((span["start"], span["end"]) for span in answer.leak_spans)


def judge_views(duel: Duel) -> tuple[JudgeView, ...]:
    by_judge = groupby(duel.verdicts.all(), key=lambda verdict: verdict.judge)
    return tuple(JudgeView(name, tuple(_verdict_view(verdict) for verdict in group)) for name, group in by_judge)


def answer_facts_in_words(answer: Answer) -> tuple[str, ...]:
    return (
        "THOUGHT" if answer.has_thought else "no THOUGHT",
        f"{answer.blocks} bash {'block' if answer.blocks == 1 else 'blocks'}",
        f"{answer.commands} {'command' if answer.commands == 1 else 'commands'}",
        answer.action_style or "other",
        f"{answer.tokens} tokens",
    )


def _answer_view(title: str, answer: Answer, marks: tuple[Span, ...]) -> AnswerView:
    text = answer.text.text
    return AnswerView(title, answer.model, render_text(text, marks), text, answer, answer_facts_in_words(answer))


def _verdict_view(verdict: Verdict) -> VerdictView:
    challenger = 2 if verdict.order == Order.KING_FIRST else 1
    cells = []
    for dimension in DIMENSIONS:
        value = verdict.dimensions.get(dimension)
        if value is None:
            cells.append(Cell("–", "muted"))
        elif value == 0:
            cells.append(Cell("draw", "muted"))
        else:
            better = value == challenger
            cells.append(Cell("challenger" if better else "opponent", "good" if better else "bad"))
    return VerdictView(verdict, Order(verdict.order).label, tuple(cells))
