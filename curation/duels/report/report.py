"""A duel run in words and figures: the same data for the run's page and for `report.md`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from django.db.models import QuerySet

from curation.duels.models import Duel, Exclusion
from curation.runs.models import Item, Run
from curation.samples.models import Bucket, flag_names
from judging.panel.rubric import DIMENSIONS

REPORTED_KINDS = frozenset({"duel", "judge", "rescore"})
SELF_PREFERENCE = "of the family of a model that it judged: mind self-preference"


@dataclass(frozen=True, slots=True)
class JudgeRow:
    """One judge over the run, in words: rates as percentages, `cost` "unknown" as soon as one call's is."""

    name: str
    duels: int
    win_rate: str
    flip_rate: str
    parse_rate: str
    agreement: str
    tokens: int
    cost: str
    note: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Items of a stage that were skipped or failed for one reason."""

    stage: str
    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class RunReport:
    """A run's result (`curation.duels.report.stage`); `accepted` is None while there is no verdict.

    `margin` is in points, both LCBs are shares from -0.5 to 0.5, lengths are mean tokens of an answer.
    """

    run: Run
    opponent: str
    accepted: bool | None
    reasons: tuple[str, ...]
    margin: str
    lcb: str
    lcb_unclustered: str
    parsed: int
    done: int
    winners: str
    losers: str
    buckets: tuple[tuple[Bucket, int], ...]
    judges: tuple[JudgeRow, ...]
    left_out: tuple[LeftOut, ...]
    exclusions: tuple[Exclusion, ...]

    @property
    def models(self) -> list[tuple[str, str]]:
        """(side, endpoint) of what answered, where the run itself had it answered."""
        sides = ((name, self.run.params.get(f"{name}_model")) for name in ("king", "challenger"))
        return [(name, str(model)) for name, model in sides if model]

    @property
    def cost(self) -> str:
        return cost_in_words(self.run)


def report_of(run: Run) -> RunReport:
    figures = run.result
    lengths = figures.get("lengths", {})
    buckets = figures.get("buckets", {})
    return RunReport(
        run=run,
        opponent="reference" if run.params.get("mode") == 1 else "king",
        accepted=figures.get("accepted"),
        reasons=tuple(figures.get("reasons", ())),
        margin=_number(figures.get("margin"), 1),
        lcb=_number(figures.get("lcb"), 4),
        lcb_unclustered=_number(figures.get("lcb_unclustered"), 4),
        parsed=figures.get("parsed", 0),
        done=figures.get("done", 0),
        winners=_number(lengths.get("winners"), 1),
        losers=_number(lengths.get("losers"), 1),
        buckets=tuple((bucket, buckets[bucket.value]) for bucket in Bucket if bucket.value in buckets),
        judges=tuple(_judge_row(judge) for judge in figures.get("judges", ())),
        left_out=tuple(
            LeftOut(stage, reason, count)
            for stage, reasons in figures.get("skipped", {}).items()
            for reason, count in reasons.items()
        ),
        exclusions=tuple(Exclusion.objects.filter(project=run.project).order_by("instance_id")),
    )


def cost_in_words(run: Run) -> str:
    """What is known of a run's cost; calls of unknown price never pass for free."""
    known, unknown = f"${run.cost.normalize():f}", run.cost_unknown_calls
    if not unknown:
        return known
    calls = f"{unknown} {'call' if unknown == 1 else 'calls'} of unknown cost"
    return f"{known} and {calls}" if run.cost else f"unknown ({calls})"


def markdown(report: RunReport) -> Iterator[str]:
    """The report line by line; its rows are streamed, so their number does not matter."""
    run = report.run
    yield f"# Duel run {run.pk} of {run.project.slug}\n\n"
    yield from _header(report)
    yield from _verdict(report)
    yield from _exclusions(report)
    yield from _judges(report)
    yield "## Turns\n\n"
    yield _row(["score", "bucket", "source", "instance", "action style", *DIMENSIONS, "flags"])
    yield _row(["---:", "---", "---", "---", "---", *["---:"] * len(DIMENSIONS), "---"])
    scored = Item.objects.filter(run=run, stage="score").order_by("id").values_list("result", flat=True)
    for result in scored.iterator(20):
        yield from _turns(result.get("rows", []))


def _header(report: RunReport) -> Iterator[str]:
    run = report.run
    yield f"- state: {run.state}\n- opponent: {report.opponent}\n"
    for side, model in report.models:
        yield f"- {side}: {_cell(model)}\n"
    yield f"- duels: {report.done}, of which {report.parsed} parsed\n"
    for bucket, count in report.buckets:
        yield f"- {bucket.value}: {count}\n"
    yield f"- calls: {run.calls}, tokens in: {run.tokens_in}, tokens out: {run.tokens_out}, cost: {report.cost}\n"
    yield f"- mean answer length: winners {report.winners}, losers {report.losers} tokens\n\n"


def _verdict(report: RunReport) -> Iterator[str]:
    yield "## Verdict\n\n"
    if report.accepted is None:
        yield "There is no verdict yet.\n\n"
        return
    yield f"**{'Accepted' if report.accepted else 'Not accepted'}**"
    yield (": " + "; ".join(report.reasons) if report.reasons else "") + "\n\n"
    yield f"- margin (challenger minus {report.opponent}, points): {report.margin}\n"
    yield f"- LCB, resampled by pull request: {report.lcb}\n"
    yield f"- LCB, resampled by turn: {report.lcb_unclustered}\n\n"


def _exclusions(report: RunReport) -> Iterator[str]:
    yield "## Left out\n\n"
    for entry in report.left_out:
        yield f"- {entry.stage}: {entry.count} × {_cell(entry.reason)}\n"
    for exclusion in report.exclusions:
        yield f"- excluded instance {_cell(exclusion.instance_id)}: {_cell(exclusion.reason)}\n"
    yield "\n" if report.left_out or report.exclusions else "Nothing.\n\n"


def _judges(report: RunReport) -> Iterator[str]:
    yield "## Judges\n\n"
    yield _row(["judge", "duels", "win rate", "flip rate", "parse rate", "agreement", "tokens", "cost", "note"])
    yield _row(["---", *["---:"] * 7, "---"])
    for judge in report.judges:
        rates = [judge.win_rate, judge.flip_rate, judge.parse_rate, judge.agreement]
        yield _row([judge.name, judge.duels, *rates, judge.tokens, judge.cost, judge.note])
    yield "\n"


def _turns(rows: list[list[object]]) -> Iterator[str]:
    """The turns as this run scored them (`curation.duels.score.stage.Scored.row`), whatever was scored since."""
    known = _duels([int(str(row[0])) for row in rows])
    for pk, score, bucket, flags, metrics in rows:
        duel = known.get(pk)
        if duel is None:
            continue  # its prompt was deleted
        prompt = duel.prompt
        place = f"{prompt.source}:{prompt.row_offset}:{prompt.turn_index}"
        numbers = [_number(metric, 1) for metric in metrics] if isinstance(metrics, list) else []
        cells = [_number(score, 1), bucket, place, prompt.instance_id, duel.challenger.action_style, *numbers]
        yield _row([*cells, ", ".join(flag_names(int(str(flags))))])


def _duels(ids: list[int]) -> dict[object, Duel]:
    found: QuerySet[Duel] = Duel.objects.filter(pk__in=ids).select_related("prompt", "challenger")
    return {duel.pk: duel for duel in found}


def _judge_row(judge: Mapping[str, object]) -> JudgeRow:
    cost = judge["cost"]
    return JudgeRow(
        name=str(judge["name"]),
        duels=int(str(judge["n"])),
        win_rate=_percent(judge["win_rate"]),
        flip_rate=_percent(judge["flip_rate"]),
        parse_rate=_percent(judge["parse_rate"]),
        agreement=_percent(judge["agreement"]),
        tokens=int(str(judge["tokens"])),
        cost="unknown" if cost is None else f"${cost}",
        note=SELF_PREFERENCE if judge["same_family"] else "",
    )


def _row(cells: list[object]) -> str:
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |\n"


# What Markdown would act on. Underscores stay: inside words they mean nothing, and names are full of them.
_ESCAPED = {ord(sign): f"\\{sign}" for sign in "\\|[]`*"} | {ord("<"): "&lt;", ord("&"): "&amp;"}


def _cell(value: object) -> str:
    """Text from outside: on one line, out of Markdown's syntax, without what a terminal would act on."""
    line = " ".join(str(value).split())
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in line).translate(_ESCAPED)


def _number(value: object, digits: int) -> str:
    return f"{value:.{digits}f}" if isinstance(value, int | float) else "–"


def _percent(value: object) -> str:
    return f"{100 * value:.1f} %" if isinstance(value, int | float) else "–"
