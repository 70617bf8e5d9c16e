"""The context of a duel's page: rendered answers with leak spans, verdicts by judge, the history."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.safestring import SafeString

from curation.duels.judge.controls import sides_of
from curation.duels.models import READ, Answer, Duel, Opponent, Side
from curation.duels.pages.verdicts import JudgeVerdicts, judge_views
from curation.duels.prompts.queries import history_of
from curation.duels.score.models import ScorePanel
from curation.duels.score.shown import ImportedOut, Shown, imported, of_score, opponent_word, shown, verdicts_of
from curation.projects.settings.data import Data, Words
from curation.web.ids import find
from curation.web.problems import NotFound
from curation.web.text.figures import counted
from curation.web.text.markup import Span, render_text
from curation.web.text.transcript import Excerpt, TranscriptTurn
from judging.controls import ControlKind
from judging.leaks.lint import PLAIN_COPIES, RULES
from judging.panel.rubric import in_order


@dataclass(frozen=True, slots=True)
class AnswerView:
    """One answer. `row` is None for the reference. `facts` are texts such as "1 command"."""

    title: str
    model: str
    html: SafeString
    row: Answer | None
    facts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ScorePart:
    name: str
    value: float


@dataclass(frozen=True, slots=True)
class RunScore:
    """A run's score of the duel. `current`: the page shows it."""

    score: Shown
    run_id: int | None
    panel: ScorePanel
    current: bool


@dataclass(frozen=True, slots=True)
class DuelView:
    """`control` names the right verdict of a control duel, and why it is known; "" for any other duel."""

    control: str
    opponent: AnswerView
    challenger: AnswerView
    judges: list[JudgeVerdicts]
    metrics: tuple[ScorePart, ...]
    dimensions: tuple[str, ...]
    leaks: tuple[str, ...]
    history: Excerpt[TranscriptTurn]
    shown: Shown
    run_id: int | None
    scores: tuple[RunScore, ...]
    imported: ImportedOut | None

    @property
    def both_orders(self) -> bool:
        """Whether the panel of the shown score read both answers in both places."""
        return self.shown.row is not None and len(self.shown.row.panel.orders) == 2


def duel_of_run(duel: Duel, run: str) -> Duel:
    """Let the duel show the score of this run. `NotFound` if the run did not score it."""
    rows = duel.project.runs.filter(deleting_at=None)
    found = find(rows, run, "run")
    scored = Duel.objects.filter(pk=duel.pk).with_texts().scored_by(found).first()
    if scored is None:
        raise NotFound(f"Run {found.pk} did not score this duel. Choose another run.")
    return scored


def duel_view(duel: Duel) -> DuelView:
    """Needs `with_texts()`."""
    answer = duel.challenger
    found = shown(duel)
    data = duel.project.settings.data
    judges = judge_views(duel, verdicts_of(duel, found.row), data.words)
    challenger = _answer_view(data.words.candidate, answer, _leak_spans(answer), data)
    if duel.control and duel.king is None:
        opponent, challenger = _control_views(duel, data)
    elif duel.king is not None:
        opponent = _answer_view(data.words.opponent, duel.king, (), data)
    elif duel.opponent == Opponent.NONE:
        opponent = AnswerView("No opponent", "imported without another answer", render_text(""), None, ())
    else:
        opponent = AnswerView("Reference", "", render_text(duel.reference_text), None, ())
    return DuelView(
        control=_control_words(duel, data.words),
        opponent=opponent,
        challenger=challenger,
        judges=judges,
        metrics=tuple(ScorePart(name, found.metrics[name]) for name in in_order(found.metrics)),
        dimensions=in_order(cell.dimension for judge in judges for cell in judge.cells),
        leaks=tuple(dict.fromkeys(map(_leak_text, [*answer.leak_spans, *answer.reading.get("findings", ())]))),
        history=history_of(duel.prompt).opening(),
        shown=found,
        run_id=found.row.run_id if found.row else duel.run_id,
        scores=tuple(
            RunScore(of_score(row, duel), row.run_id, row.panel, found.row is not None and row.pk == found.row.pk)
            for row in duel.scores.all()
        ),
        imported=imported(duel) if found.row is None else None,
    )


def _control_views(duel: Duel, data: Data) -> tuple[AnswerView, AnswerView]:
    """Both sides of a control duel of one answer, which has a planted fault or a bribe on one side."""
    added = "a bribe for the judge" if duel.control == ControlKind.BRIBE else "a planted fault"
    king, challenger = (
        AnswerView(f"{title} with {added}", "", render_text(text), None, ())
        if duel.planted and text == duel.planted
        else _answer_view(title, duel.challenger, (), data)
        for title, text in zip(
            (opponent_word(duel.opponent, data.words), data.words.candidate), sides_of(duel), strict=True
        )
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


def _answer_view(title: str, answer: Answer, spans: tuple[Span, ...], data: Data) -> AnswerView:
    return AnswerView(title, answer.model, render_text(answer.text.text, spans), answer, _facts(answer, data))
