from collections.abc import Iterable
from dataclasses import dataclass

from django.urls import reverse
from django.utils.safestring import SafeString

from curation.evaluations.conclusions.conclude import Conclusion, conclusions_of
from curation.evaluations.contamination.pages import Contamination, contamination_of, gaps_of
from curation.evaluations.live.figures import live_figures, live_rows, stalling_notes
from curation.evaluations.live.mismatches import mismatches_of
from curation.evaluations.missing import missing_notes
from curation.evaluations.models import ContaminationCheck, EvaluatedModel, Evaluation, EvaluationKind, ScreenedAnswer
from curation.evaluations.params import DEFAULTS
from curation.evaluations.screen.figures import Row, figures_of, overall
from curation.evaluations.screen.tables import Table, TierTable, figure_table, tier_table
from curation.runs.models import LIVE
from curation.web.text.chat import Chat
from curation.web.text.markup import code_html, visible
from curation.web.text.transcript import TranscriptTurn
from judging.commands.words import difference

SHOWN_CHARACTERS = 160
LIVE_SETTINGS = (
    ("Environment", "environment"),
    ("Sent with the reset", "reset_template"),
    ("Steps at most", "max_steps"),
    ("Episodes of each task", "episodes"),
    ("Hints", "hints"),
)


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A model and the parameters of its calls; `differs` if most of the other models were called with others."""

    model: EvaluatedModel
    params: str
    differs: bool


@dataclass(frozen=True, slots=True)
class MismatchLine:
    model: str
    task: SafeString
    asked: SafeString
    played: SafeString


@dataclass(frozen=True, slots=True)
class EvaluationPage:
    """`sections` are headings with their tables, only after the run has ended. `log_url` lists calls or episodes.
    `tiers`, `mismatches` and `notes` are those of live episodes."""

    evaluation: Evaluation
    running: bool
    done: int
    total: int
    table: Table
    contamination: Contamination | None
    sections: tuple[tuple[str, tuple[Table, ...]], ...]
    tiers: TierTable | None
    calls: tuple[ModelCall, ...]
    settings: tuple[tuple[str, object], ...]
    baseline_pk: int | None
    log_url: str
    mismatches: tuple[MismatchLine, ...]
    notes: tuple[str, ...]
    missing: tuple[str, ...]
    result_url: str
    conclusions: tuple[Conclusion, ...]


@dataclass(frozen=True, slots=True)
class DiffPart:
    kind: str
    html: SafeString
    side: str
    word: str


@dataclass(frozen=True, slots=True)
class CallLine:
    """One line of the log. `answer` is the extracted command, else the whole answer, else the error."""

    call: ScreenedAnswer
    answer: SafeString
    expected: SafeString
    url: str


@dataclass(frozen=True, slots=True)
class CallPage:
    """One answer; `others` are other models' answers to the same row."""

    call: ScreenedAnswer
    turns: list[TranscriptTurn]
    raw: SafeString
    extracted: SafeString
    expected: SafeString
    parts: tuple[DiffPart, ...]
    columns: tuple[tuple[str, bool], ...]
    others: list[CallLine]
    thinking: SafeString


def evaluation_page(evaluation: Evaluation) -> EvaluationPage:
    run, live = evaluation.run, evaluation.kind == EvaluationKind.LIVE
    running = run.state in LIVE
    check = None if live else ContaminationCheck.objects.newest(evaluation.split)
    log = "evaluation-episodes" if live else "evaluation-calls"
    settings = LIVE_SETTINGS if live else ()
    table = overall_table(evaluation)
    return EvaluationPage(
        evaluation=evaluation,
        running=running,
        done=run.items_done + run.items_failed + run.items_skipped,
        # The items of an import that comes first are not answers.
        total=run.items_total if live or run.stage in ("", "screen") else 0,
        table=table,
        contamination=contamination_of(evaluation.project.slug, check),
        sections=() if running or live else _sections(evaluation, check),
        tiers=_tiers(evaluation) if live and not running else None,
        calls=_calls(list(evaluation.models.order_by("place"))),
        settings=tuple(
            (label, value) for label, name in settings if (value := evaluation.params.get(name)) not in (None, "")
        ),
        baseline_pk=evaluation.split.baseline_id if evaluation.split else None,
        log_url=reverse(log, args=[evaluation.project.slug, evaluation.pk]),
        mismatches=_mismatches(evaluation) if any(line.mismatches for line in table.lines) else (),
        notes=tuple(stalling_notes(live_rows(evaluation))) if live and not running else (),
        missing=() if running else tuple(missing_notes(evaluation, rows_of(evaluation))),
        result_url=f"/api/v1/evaluations/{evaluation.pk}/result.json",
        conclusions=() if running or live else tuple(conclusions_of(evaluation, overall(evaluation))),
    )


def _mismatches(evaluation: Evaluation) -> tuple[MismatchLine, ...]:
    return tuple(
        MismatchLine(one.model, visible(one.key), visible(one.asked["sentence"]), visible(one.played["sentence"]))
        for one in mismatches_of(evaluation)
    )


def rows_of(evaluation: Evaluation) -> list[Row]:
    return live_rows(evaluation) if evaluation.kind == EvaluationKind.LIVE else overall(evaluation)


def overall_table(evaluation: Evaluation) -> Table:
    rows = rows_of(evaluation)
    return figure_table(evaluation.kind, rows)


def call_lines(slug: str, calls: Iterable[ScreenedAnswer]) -> list[CallLine]:
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
    short = " ".join(text[: 2 * SHOWN_CHARACTERS].split())
    return short if len(short) <= SHOWN_CHARACTERS else f"{short[: SHOWN_CHARACTERS - 1]}…"


def call_page(slug: str, call: ScreenedAnswer) -> CallPage:
    """Needs the texts of row and answer."""
    text, expected = call.text, call.row.text.expected
    found = text.extracted or text.completion
    words = {"both": "in both", "found": "only in the answer", "expected": "only in the expected command"}
    parts = tuple(
        DiffPart(part.kind, visible(part.text), part.side, words[part.side]) for part in difference(found, expected)
    )
    others = ScreenedAnswer.objects.filter(evaluation=call.evaluation_id, row=call.row_id).exclude(pk=call.pk)
    return CallPage(
        call=call,
        turns=Chat(call.row.text.messages, agent=False).complete(),
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


def _tiers(evaluation: Evaluation) -> TierTable | None:
    """None if no episode has a tier."""
    figures = live_figures(evaluation)
    named = any(tier.name for tier in figures.tiers)
    return tier_table(evaluation.kind, figures.rows, figures.tiers) if named else None


def _sections(evaluation: Evaluation, check: ContaminationCheck | None) -> tuple[tuple[str, tuple[Table, ...]], ...]:
    """Headings with their tables, without a heading whose only group has no name."""
    figures = figures_of(evaluation, check)
    found: list[tuple[str, tuple[Table, ...]]] = []
    if figures.clean is not None and figures.contaminated is not None:
        clean = "Rows without a match: the check is incomplete" if check and gaps_of(check) else "Clean rows"
        tables = ((clean, figures.clean), ("Rows found in the training data", figures.contaminated))
        found.append(
            ("Clean and contaminated rows", tuple(figure_table(evaluation.kind, rows, title) for title, rows in tables))
        )
    for title, groups in (("By tier", figures.tiers), ("By source", figures.sources)):
        if len(groups) > 1 or (groups and groups[0].name):
            by_group = (figure_table(evaluation.kind, group.rows, group.name or "none") for group in groups)
            found.append((title, tuple(by_group)))
    return tuple(found)


def _calls(models: list[EvaluatedModel]) -> tuple[ModelCall, ...]:
    """Models of one evaluation should be called alike; the page points out those whose endpoint differs."""
    params = [_params(model) for model in models]
    usual = max(set(params), key=params.count, default="")
    return tuple(ModelCall(model, text, text != usual) for model, text in zip(models, params, strict=True))


def _params(model: EvaluatedModel) -> str:
    params = {**DEFAULTS, **model.call_params}
    return ", ".join(
        f"{name.replace('_', ' ')} {value:g}" if isinstance(value, float) else f"{name.replace('_', ' ')} {value}"
        for name, value in sorted(params.items())
    )
