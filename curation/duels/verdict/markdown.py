"""The report of a duel run as Markdown, line by line: it may have any number of turns."""

from collections.abc import Iterator
from itertools import islice

from curation.duels.score.models import Score
from curation.duels.score.readings import read_reasons
from curation.duels.score.shown import seats_of
from curation.duels.verdict.report import RunReport
from curation.runs.kinds import Json
from curation.runs.models import Run
from curation.samples.models import flag_names
from curation.web.text.figures import number
from judging.panel.reasons import named_text
from judging.panel.rubric import DIMENSIONS, in_order

CHUNK = 200


def markdown(report: RunReport) -> Iterator[str]:
    run = report.run
    yield f"# Duel run {run.pk} of {run.project.slug}\n\n"
    yield from _header(report)
    yield from _verdicts(report)
    if report.leaks:
        yield "## Leaks\n\n" + "".join(f"- {_cell(line)}\n" for line in report.leaks) + "\n"
    yield from _skipped(report)
    yield from _judges(report)
    yield "## Turns\n\n"
    last = Score.objects.filter(run=run, score__isnull=False).order_by("-duel_id").first()
    dimensions = in_order(last.metrics) if last else DIMENSIONS
    yield _row(["score", "bucket", "source", "instance", "action style", *dimensions, "flags"])
    yield _row(["---:", "---", "---", "---", "---", *["---:"] * len(dimensions), "---"])
    for score in _scores(run):
        prompt = score.duel.prompt
        numbers = [number(score.metrics.get(name), 1) for name in dimensions]
        style = score.duel.challenger.action_style
        cells = [number(score.score, 1), score.bucket, str(prompt), prompt.instance_id, style, *numbers]
        yield _row([*cells, ", ".join(flag_names(score.flags))])
    yield from _reasons(run)


def _scores(run: Run) -> Iterator[Score]:
    rows = Score.objects.filter(run=run).select_related("duel__prompt", "duel__challenger").order_by("duel_id")
    return rows.iterator(chunk_size=CHUNK)


def _reasons(run: Run) -> Iterator[str]:
    """Yield each judge's reasons for each turn."""
    yield "\n## Reasons\n\n"
    scores = _scores(run)
    while chunk := list(islice(scores, CHUNK)):
        yield from _reasons_of(chunk)


def _reasons_of(scores: list[Score]) -> Iterator[str]:
    said = read_reasons([pk for score in scores for pk in score.verdicts])
    for score in scores:
        prompt = score.duel.prompt
        yield f"### {_cell(prompt)}, {_cell(prompt.instance_id)}: {number(score.score, 1)} {score.bucket}\n\n"
        for pk in score.verdicts:
            if pk in said:
                judge, order, parsed, reason = said[pk]
                seats = seats_of(score.duel, order)
                reply = _cell(named_text(reason, *seats)) if parsed else f"unparsed: {_cell(reason)}"
                yield f"- {_cell(judge)}, {seats[0]} first: {reply}\n"
        for judge, order in score.failed:
            yield f"- {_cell(judge)}, {seats_of(score.duel, order)[0]} first: the call failed\n"
        yield "\n"


def _header(report: RunReport) -> Iterator[str]:
    run = report.run
    yield f"- state: {run.state}\n"
    for side, model in report.models:
        yield f"- {side}: {_cell(model)}\n"
    for line in report.about:
        yield f"- {line.name}: {_cell(line.full)}\n"
    if report.counts is not None:
        yield f"- scores: {'of the panel that counts' if report.counts else 'of a panel that does not count'}\n"
    yield f"- duels: {report.done}, of which {report.parsed} parsed\n"
    for bucket, count in report.buckets:
        yield f"- {bucket.value}: {count}\n"
    yield f"- calls: {run.calls}, tokens in: {run.tokens_in}, tokens out: {run.tokens_out}, cost: {report.cost}\n"
    if len(report.pairs) == 1:
        yield _lengths(report.pairs[0])
    yield "\n"


def _lengths(pair: Json) -> str:
    return f"- mean answer length: winners {pair['winners']}, losers {pair['losers']} tokens\n"


def _verdicts(report: RunReport) -> Iterator[str]:
    if not report.pairs:
        yield "## Verdict\n\nThere is no verdict yet.\n\n"
    for place, pair in enumerate(report.pairs, 1):
        yield "## Verdict\n\n" if len(report.pairs) == 1 else f"## Verdict {place} of {len(report.pairs)}\n\n"
        yield f"**{pair['word']}**" + (": " + "; ".join(pair["reasons"]) if pair["reasons"] else "") + "\n\n"
        for side in pair["contestants"]:
            yield f"- {side.name}: {_cell(side.full)}\n"
        margin = ", ".join(filter(None, [pair["margin"], pair["compared"]]))
        yield f"- margin (challenger minus {pair['opponent']}, points): {margin}\n"
        yield f"- lower bound (LCB), resampled by {pair['clusters']} (points): {pair['lcb']}\n"
        yield f"- lower bound (LCB), resampled by turn (points): {pair['lcb_unclustered']}\n"
        yield "".join(f"- {line}\n" for line in (*pair["without_flagged"], _cell(pair["basis"])))
        if len(report.pairs) > 1:
            yield f"- duels: {pair['done']}, of which {pair['parsed']} parsed\n{_lengths(pair)}"
        yield "\n"


def _skipped(report: RunReport) -> Iterator[str]:
    yield "## Skipped\n\n"
    for stage, reason, count in report.skipped:
        yield f"- {stage}: {count} × {_cell(reason)}\n"
    for exclusion in report.exclusions:
        yield f"- excluded instance {_cell(exclusion.instance_id)}: {_cell(exclusion.reason)}\n"
    yield "\n" if report.skipped or report.exclusions else "Nothing.\n\n"


def _judges(report: RunReport) -> Iterator[str]:
    yield "## Judges\n\n"
    yield _row(["judge", "duels", "win rate", "flip rate", "parse rate", "agreement", "tokens", "cost", "note"])
    yield _row(["---", *["---:"] * 7, "---"])
    for judge in report.judges:
        yield _row([value for name, value in judge.items() if name != "findings"])
    yield "\n"
    for judge in report.judges:
        for sentence in judge["findings"]:
            yield f"- {_cell(judge['name'])}: {_cell(sentence)}\n"
    if report.costs:
        yield "\n## Costs\n\n"
        yield _row(["stage", "model", "calls", "tokens", "cost"])
        yield _row(["---", "---", "---:", "---:", "---:"])
        for cost in report.costs:
            yield _row([cost[name] for name in ("stage", "model", "calls", "tokens", "cost")])
    yield "\n"


def _row(cells: list[object]) -> str:
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |\n"


# The characters of Markdown's syntax. Underscores have no meaning inside words, where names have them.
_ESCAPED = {ord(sign): f"\\{sign}" for sign in "\\|[]`*"} | {ord("<"): "&lt;", ord("&"): "&amp;"}


def _cell(value: object) -> str:
    """Return text on one line, with Markdown and control characters escaped."""
    line = " ".join(str(value).split())
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in line).translate(_ESCAPED)
