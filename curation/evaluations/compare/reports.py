import csv
import io
from collections.abc import Callable, Mapping, Sequence

import orjson

from curation.evaluations.compare.compare import MetricChange, ModelComparison
from curation.evaluations.compare.conclude import conclusion, missing_for_clear
from curation.evaluations.compare.pairs import ComparedPair
from curation.evaluations.models import EvaluatedModel
from curation.web.problems import NotFound
from curation.web.text.figures import counted

Json = dict[str, object]
CSV_HEAD = (
    *("part", "metric", "rows", "before", "after", "delta", "low", "high", "said", "gained", "lost", "p"),
    *("p_tasks", "p_corrected", "tasks_missing", "note"),
)
METHOD = (
    "Verdicts are those of the sign-flip test over tasks, corrected by Holm for all comparisons of the report: likely "
    "below 0.05, clear below 0.01."
)


def comparison_json(found: ModelComparison) -> Json:
    """The response of the API."""
    return {
        "before": _model(found.before),
        "after": _model(found.after),
        "rows": found.rows,
        "tasks": found.tasks,
        "unpaired": found.unpaired,
        "missing": found.missing,
        "incomplete": found.missing > 0,
        "notes": list(found.notes),
        "comparisons": found.comparisons,
        "method": METHOD,
        "conclusion": conclusion(found),
        "metrics": [_metric(change) for change in found.metrics],
        "tiers": [
            {"tier": tier.tier, "rows": tier.rows, "metrics": [_metric(change) for change in tier.metrics]}
            for tier in found.tiers
        ],
        "gains": [_row(change) for change in found.gains],
        "losses": [_row(change) for change in found.losses],
    }


def report(found: ModelComparison, name: str) -> tuple[str, str]:
    """The file called `name` and its media type; raises `NotFound` for an unknown name."""
    if name not in FILES:
        raise NotFound(f"A comparison has no file {name!r}; there are {', '.join(FILES)}.")
    write, media = FILES[name]
    return write(found), media


def markdown(found: ModelComparison) -> str:
    before, after = (f"{model.name} (evaluation {model.evaluation_id})" for model in (found.before, found.after))
    lines = [
        f"# {_escaped(before)} → {_escaped(after)}",
        "",
        _escaped(conclusion(found)),
        "",
        *(line for note in found.notes for line in (_escaped(note), "")),
        f"{counted(found.rows, found.scale.noun)} {found.extent}; paired, 95 % intervals by a bootstrap over tasks.",
        f"{METHOD} The report makes {counted(found.comparisons, 'comparison')}.",
        "",
        *_table(found.metrics),
    ]
    for tier in found.tiers:
        lines += [
            "",
            f"## {_escaped(tier.tier or 'no tier')}: {counted(tier.rows, found.scale.noun)}",
            "",
            *_table(tier.metrics),
        ]
    for title, rows in (("Gains", found.gains), ("Losses", found.losses)):
        lines += ["", f"## {title}: {len(rows)}", ""]
        lines += [f"- {row.number}: {_escaped(row.preview)}" for row in rows]
    return "\n".join(lines) + "\n"


def comparison_csv(found: ModelComparison) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(CSV_HEAD)
    parts: list[tuple[str, int, Sequence[MetricChange]]] = [("all", found.rows, found.metrics)]
    parts += [(_cell(tier.tier or "no tier"), tier.rows, tier.metrics) for tier in found.tiers]
    for part, rows, metrics in parts:
        for change in metrics:
            entry = _metric(change)
            writer.writerow([part, change.name, rows, *(entry.get(name, "") for name in CSV_HEAD[3:])])
    return out.getvalue()


def _table(metrics: Sequence[MetricChange]) -> list[str]:
    lines = [
        "| metric | before | after | change | 95 % interval | verdict | p | gained | lost | more tasks needed |",
        "|---|--:|--:|--:|--:|---|--:|--:|--:|---|",
    ]
    for change in metrics:
        unit, test = change.metric.unit, change.test
        tested = f"{test.gained} | {test.lost}" if test else "|"
        lines.append(
            f"| {change.metric.label} | {unit.amount(change.before)} | {unit.amount(change.after)} | "
            f"{unit.change(change.change.delta)} | {change.interval} | {change.verdict} | "
            f"{change.corrected:.3g} | {tested} | {missing_for_clear(change)} |"
        )
        lines += [f"| | {change.note} |"] if change.note else []
    return lines


def _metric(change: MetricChange) -> Json:
    digits = change.metric.decimals
    found: Json = {
        "metric": change.name,
        "before": round(change.before, digits) + 0.0,
        "after": round(change.after, digits) + 0.0,
        "delta": round(change.change.delta, digits) + 0.0,
        "low": round(change.change.interval.low, digits) + 0.0,
        "high": round(change.change.interval.high, digits) + 0.0,
        "said": change.verdict,
        "p_tasks": round(change.change.p, 6),
        "p_corrected": round(change.corrected, 6),
        "p_equivalence": round(change.equivalence, 6),
        "margin": change.margin_size,
        "tasks_missing": change.tasks_missing,
        "note": change.note,
    }
    if change.test is not None:
        found |= {"gained": change.test.gained, "lost": change.test.lost, "p": round(change.test.p, 6)}
    return found


def _model(model: EvaluatedModel) -> Json:
    return {"evaluation": str(model.evaluation_id), "model": model.name}


def _row(pair: ComparedPair) -> Json:
    return {
        "row": None if pair.row is None else str(pair.row),
        "number": pair.number,
        "task": pair.task,
        "tier": pair.tier or None,
        "source": pair.source,
        "preview": pair.preview,
        "before": pair.before.mark,
        "after": pair.after.mark,
        "call_before": str(pair.before.pk),
        "call_after": str(pair.after.pk),
    }


def _escaped(text: str) -> str:
    """Text from a file for a Markdown line, so that it is not read as markup."""
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>|#!" else sign for sign in " ".join(text.split()))


def _cell(text: str) -> str:
    """Text for a CSV cell, so that a spreadsheet does not run it as a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t")) else text


def _json(found: ModelComparison) -> str:
    return orjson.dumps(comparison_json(found), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


FILES: Mapping[str, tuple[Callable[[ModelComparison], str], str]] = {
    "comparison.md": (markdown, "text/markdown; charset=utf-8"),
    "comparison.csv": (comparison_csv, "text/csv; charset=utf-8"),
    "comparison.json": (_json, "application/json"),
}
