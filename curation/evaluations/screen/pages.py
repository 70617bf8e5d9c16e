"""What the pages of evaluations show, computed here since templates compute nothing."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.urls import reverse
from django.utils.safestring import SafeString

from curation.evaluations.contamination.pages import Contamination, contamination_of
from curation.evaluations.models import ContaminationCheck, EvaluatedModel, Evaluation, Screened
from curation.evaluations.params import DEFAULTS
from curation.evaluations.screen.figures import Figures, figures_of
from curation.evaluations.screen.tables import ScoreTable, score_table
from curation.runs.models import LIVE
from curation.web.text.markup import code_html, visible
from curation.web.text.transcript import Turn, render_text, turns_of
from judging.commands.words import difference

SHOWN_CHARACTERS = 160


@dataclass(frozen=True, slots=True)
class Part:
    """One group's table: a tier, a source, clean or contaminated rows."""

    title: str
    table: ScoreTable


@dataclass(frozen=True, slots=True)
class Asked:
    """A model and what it was asked with; `apart` where that is not what the others were asked with."""

    model: EvaluatedModel
    words: str
    apart: bool


@dataclass(frozen=True, slots=True)
class EvaluationPage:
    evaluation: Evaluation
    live: bool
    done: int
    total: int
    table: ScoreTable
    contamination: Contamination | None
    parts: tuple[tuple[str, tuple[Part, ...]], ...]
    asked: tuple[Asked, ...]
    baseline_pk: int | None


@dataclass(frozen=True, slots=True)
class DiffPart:
    kind: str
    html: SafeString
    side: str
    word: str


@dataclass(frozen=True, slots=True)
class CallLine:
    """One line of the log: `said` is the command that was found, else the answer, else the error."""

    call: Screened
    said: SafeString
    expected: SafeString
    url: str


@dataclass(frozen=True, slots=True)
class CallPage:
    """One answer opened; `others` are what other models said on the same row."""

    call: Screened
    turns: list[Turn]
    answer: SafeString
    raw: SafeString
    extracted: SafeString
    expected: SafeString
    parts: tuple[DiffPart, ...]
    columns: tuple[tuple[str, bool], ...]
    others: list[CallLine]
    thinking: SafeString


def evaluation_page(evaluation: Evaluation) -> EvaluationPage:
    run = evaluation.run
    check = ContaminationCheck.objects.newest(evaluation.split)
    figures = figures_of(evaluation, check)
    models = list(evaluation.models.order_by("place"))
    total = run.items_total if run.stage in ("", "screen") else 0
    return EvaluationPage(
        evaluation=evaluation,
        live=run.state in LIVE,
        done=run.items_done + run.items_failed + run.items_skipped,
        total=total,
        table=score_table(figures.rows),
        contamination=contamination_of(evaluation.project.slug, check),
        parts=_parts(figures),
        asked=_asked(models),
        baseline_pk=evaluation.split.baseline_id if evaluation.split else None,
    )


def call_lines(slug: str, calls: Iterable[Screened]) -> list[CallLine]:
    """Needs `with_texts()`."""
    return [
        CallLine(
            call,
            visible(_line(call.text.extracted or call.text.completion or call.text.error) or "(empty)"),
            visible(_line(call.row.text.expected)),
            reverse("evaluation-call", args=[slug, call.evaluation_id, call.pk]),
        )
        for call in calls
    ]


def _line(text: str) -> str:
    """The text as one short line."""
    short = " ".join(text[: 2 * SHOWN_CHARACTERS].split())
    return short if len(short) <= SHOWN_CHARACTERS else f"{short[: SHOWN_CHARACTERS - 1]}…"


def call_page(slug: str, call: Screened) -> CallPage:
    """Needs the texts of row and answer."""
    text, expected = call.text, call.row.text.expected
    found = text.extracted or text.completion
    words = {"both": "in both", "found": "only in the answer", "expected": "only in the expected command"}
    parts = tuple(
        DiffPart(part.kind, visible(part.text), part.side, words[part.side]) for part in difference(found, expected)
    )
    others = Screened.objects.filter(evaluation=call.evaluation_id, row=call.row_id).exclude(pk=call.pk)
    return CallPage(
        call=call,
        turns=turns_of(call.row.text.messages),
        answer=render_text(text.completion),
        raw=visible(text.completion),
        extracted=code_html(text.extracted),
        expected=code_html(expected),
        parts=parts,
        columns=tuple((label, getattr(call, name)) for name, label in COLUMN_WORDS),
        others=call_lines(slug, others.with_texts().order_by("by__place")),
        thinking=visible(text.thinking),
    )


COLUMN_WORDS = (
    ("fmt", "nothing but a command"),
    ("xtr", "a command found"),
    ("exact", "exact"),
    ("svc", "service"),
    ("op_token", "operation"),
    ("exact_shell", "equal to a shell"),
)


def _parts(figures: Figures) -> tuple[tuple[str, tuple[Part, ...]], ...]:
    """Headings with their tables; a heading with one nameless group says nothing and is left out."""
    sections = [("By tier", figures.tiers), ("By source", figures.sources)]
    found: list[tuple[str, tuple[Part, ...]]] = []
    if figures.clean is not None and figures.contaminated is not None:
        apart = (
            Part("Clean rows", score_table(figures.clean)),
            Part("Rows that stand in the training data", score_table(figures.contaminated)),
        )
        found.append(("Clean and contaminated rows apart", apart))
    for title, groups in sections:
        if len(groups) > 1 or (groups and groups[0].name):
            found.append((title, tuple(Part(group.name or "none", score_table(group.rows)) for group in groups)))
    return tuple(found)


def _asked(models: list[EvaluatedModel]) -> tuple[Asked, ...]:
    """Models of one evaluation should be asked alike; where an endpoint's own parameters differ, that is said."""
    words = [_words(model) for model in models]
    usual = max(set(words), key=words.count, default="")
    return tuple(Asked(model, said, said != usual) for model, said in zip(models, words, strict=True))


def _words(model: EvaluatedModel) -> str:
    params = {**DEFAULTS, **model.call_params}
    return ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in sorted(params.items())
    )
