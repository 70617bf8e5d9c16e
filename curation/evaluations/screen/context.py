from collections.abc import Iterable
from typing import Any

from django.urls import reverse

from curation.evaluations.contamination.context import contamination_of, gaps_of
from curation.evaluations.live.figures import live_figures, live_rows
from curation.evaluations.live.mismatches import mismatches_of
from curation.evaluations.live.notes import live_notes
from curation.evaluations.missing import missing_notes
from curation.evaluations.models import ContaminationCheck, EvaluatedModel, Evaluation, EvaluationKind, ScreenedAnswer
from curation.evaluations.params import DEFAULTS
from curation.evaluations.screen.conclusions import conclusions_of
from curation.evaluations.screen.figures import Row, figures_of, overall
from curation.evaluations.tables import figure_table, tier_table
from curation.runs.models import LIVE
from curation.web.text.markup import code_html, visible
from curation.web.text.transcript import Chat
from judging.commands.words import difference

SHOWN_CHARACTERS = 160
LIVE_SETTINGS = (
    ("Environment", "environment"),
    ("Sent with the reset", "reset_template"),
    ("Steps at most", "max_steps"),
    ("Episodes of each task", "episodes"),
    ("Hints", "hints"),
)


Json = dict[str, Any]


def evaluation_page(evaluation: Evaluation) -> Json:
    """`sections` are headings with their tables, only after the run has ended. `log_url` lists calls or episodes.
    `tiers`, `mismatches` and `notes` are those of live episodes."""
    run, live = evaluation.run, evaluation.kind == EvaluationKind.LIVE
    running = run.state in LIVE
    check = None if live else ContaminationCheck.objects.newest(evaluation.split)
    log = "evaluation-episodes" if live else "evaluation-calls"
    settings = [(label, evaluation.params.get(name)) for label, name in LIVE_SETTINGS if live]
    table = overall_table(evaluation)
    return {
        "evaluation": evaluation,
        "running": running,
        "done": run.items_done + run.items_failed + run.items_skipped,
        # The items of an import that comes first are not answers.
        "total": run.items_total if live or run.stage in ("", "screen") else 0,
        "table": table,
        "contamination": contamination_of(evaluation.project.slug, check),
        "sections": [] if running or live else _sections(evaluation, check),
        "tiers": _tiers(evaluation) if live and not running else None,
        "calls": _calls(list(evaluation.models.order_by("place"))),
        "settings": [(label, value) for label, value in settings if value not in (None, "")],
        "baseline_pk": evaluation.split.baseline_id if evaluation.split else None,
        "log_url": reverse(log, args=[evaluation.project.slug, evaluation.pk]),
        "mismatches": _mismatches(evaluation) if any(line.get("mismatches") for line in table["lines"]) else [],
        "notes": live_notes(evaluation, live_rows(evaluation)) if live and not running else [],
        "missing": [] if running else missing_notes(evaluation, rows_of(evaluation)),
        "result_url": f"/api/v1/evaluations/{evaluation.pk}/result.json",
        "conclusions": [] if running or live else conclusions_of(evaluation, overall(evaluation)),
    }


def _mismatches(evaluation: Evaluation) -> list[Json]:
    return [
        {
            "model": one.model,
            "task": visible(one.key),
            "asked": visible(one.asked.sentence),
            "played": visible(one.played.sentence),
        }
        for one in mismatches_of(evaluation)
    ]


def rows_of(evaluation: Evaluation) -> list[Row]:
    return live_rows(evaluation) if evaluation.kind == EvaluationKind.LIVE else overall(evaluation)


def overall_table(evaluation: Evaluation) -> Json:
    return figure_table(evaluation.kind, rows_of(evaluation))


def call_lines(slug: str, calls: Iterable[ScreenedAnswer]) -> list[Json]:
    """The lines of the log. `answer` is the extracted command, else the whole answer, else the error. Needs
    `with_texts()`."""
    return [
        {
            "call": call,
            "answer": visible(_line(call.text.extracted or call.text.completion or call.text.error) or "(empty)"),
            "expected": visible(_line(call.row.text.expected)),
            "url": reverse("evaluation-call", args=[slug, call.evaluation_id, call.pk]),
        }
        for call in calls
    ]


def _line(text: str) -> str:
    short = " ".join(text[: 2 * SHOWN_CHARACTERS].split())
    return short if len(short) <= SHOWN_CHARACTERS else f"{short[: SHOWN_CHARACTERS - 1]}…"


def call_page(slug: str, call: ScreenedAnswer) -> Json:
    """One answer; `others` are other models' answers to the same row. Needs the texts of row and answer."""
    text, expected = call.text, call.row.text.expected
    words = {"both": "in both", "found": "only in the answer", "expected": "only in the expected command"}
    parts = difference(text.extracted or text.completion, expected)
    others = ScreenedAnswer.objects.filter(evaluation=call.evaluation_id, row=call.row_id).exclude(pk=call.pk)
    return {
        "call": call,
        "turns": Chat(call.row.text.messages, agent=False).complete(),
        "raw": visible(text.completion),
        "extracted": code_html(text.extracted),
        "expected": code_html(expected),
        "parts": [(part, visible(part.text), words[part.side]) for part in parts],
        "columns": [(label, getattr(call, name)) for name, label in COLUMN_WORDS],
        "others": call_lines(slug, others.with_texts().order_by("by__place")),
        "thinking": visible(text.thinking),
    }


COLUMN_WORDS = (
    ("fmt", "nothing but a command"),
    ("xtr", "a command found"),
    ("exact", "exact"),
    ("svc", "service"),
    ("op_token", "operation"),
    ("exact_shell", "equal to a shell"),
)


def _tiers(evaluation: Evaluation) -> Json | None:
    """None if no episode has a tier."""
    figures = live_figures(evaluation)
    return tier_table(evaluation.kind, figures.rows, figures.tiers) if any(figures.tiers) else None


def _sections(evaluation: Evaluation, check: ContaminationCheck | None) -> list[tuple[str, list[Json]]]:
    """Headings with their tables, without a heading whose only group has no name."""
    figures = figures_of(evaluation, check)
    found = []
    if figures.clean is not None and figures.contaminated is not None:
        clean = "Rows without a match: the check is incomplete" if check and gaps_of(check) else "Clean rows"
        parts = [(clean, figures.clean), ("Rows found in the training data", figures.contaminated)]
        found.append(("Clean and contaminated rows", parts))
    for title, groups in (("By tier", figures.tiers), ("By source", figures.sources)):
        if any(groups):
            found.append((title, [(name or "none", rows) for name, rows in groups.items()]))
    return [(title, [figure_table(evaluation.kind, rows, name) for name, rows in parts]) for title, parts in found]


def _calls(models: list[EvaluatedModel]) -> list[Json]:
    """Each model with the parameters of its calls. Models of one evaluation should be called alike: `differs` says
    that most of the others were called with other parameters."""
    params = [_params(model) for model in models]
    usual = max(set(params), key=params.count, default="")
    return [
        {"model": model, "params": text, "differs": text != usual} for model, text in zip(models, params, strict=True)
    ]


def _params(model: EvaluatedModel) -> str:
    params = {**DEFAULTS, **model.call_params}
    return ", ".join(
        f"{name.replace('_', ' ')} {value:g}" if isinstance(value, float) else f"{name.replace('_', ' ')} {value}"
        for name, value in sorted(params.items())
    )
