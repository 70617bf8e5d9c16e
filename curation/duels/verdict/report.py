"""The report of a duel run, for its page and for `report.md`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from django.db.models import QuerySet

from curation.duels.answers.read import leak_lines
from curation.duels.models import Duel, Exclusion
from curation.runs.models import Item, Run
from curation.samples.models import Bucket, flag_names
from judging.panel.rubric import DIMENSIONS

REPORTED_KINDS = frozenset({"duel", "judge", "rescore"})
SELF_PREFERENCE = "of the same family as a model that it judged: possible self-preference"


@dataclass(frozen=True, slots=True)
class JudgeRow:
    """One judge over the run, as text. `cost` is "unknown" if the cost of any call is; `findings` are sentences."""

    name: str
    duels: int
    win_rate: str
    flip_rate: str
    parse_rate: str
    agreement: str
    tokens: int
    cost: str
    note: str
    findings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SkippedItems:
    """The items of a stage that were skipped or failed for one reason."""

    stage: str
    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class RunReport:
    """A run's result (`curation.duels.verdict.stage`). `accepted` is None before the verdict.

    Margins and lower confidence bounds (LCB) are in points, lengths are mean tokens. `undecided`: without one judge the
    verdict would be the opposite.
    """

    run: Run
    opponent: str
    accepted: bool | None
    reasons: tuple[str, ...]
    margin: str
    lcb: str
    lcb_unclustered: str
    clusters: str
    without_leaks: str
    basis: str
    undecided: bool
    parsed: int
    done: int
    winners: str
    losers: str
    buckets: tuple[tuple[Bucket, int], ...]
    judges: tuple[JudgeRow, ...]
    leaks: tuple[str, ...]
    skipped: tuple[SkippedItems, ...]
    exclusions: tuple[Exclusion, ...]

    @property
    def models(self) -> list[tuple[str, str]]:
        """Return (side, endpoint) of the models that answered in this run."""
        sides = ((name, self.run.params.get(f"{name}_model")) for name in ("king", "challenger"))
        return [(name, str(model)) for name, model in sides if model]

    @property
    def cost(self) -> str:
        return cost_text(self.run)


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
        lcb=_number(figures.get("lcb"), 1),
        lcb_unclustered=_number(figures.get("lcb_unclustered"), 1),
        clusters=_clusters(figures),
        without_leaks=_without_leaks(figures),
        basis=figures.get("basis", ""),
        undecided=bool(figures.get("undecided_without")),
        parsed=figures.get("parsed", 0),
        done=figures.get("done", 0),
        winners=_number(lengths.get("winners"), 1),
        losers=_number(lengths.get("losers"), 1),
        buckets=tuple((bucket, buckets[bucket.value]) for bucket in Bucket if bucket.value in buckets),
        judges=tuple(_judge_row(judge) for judge in figures.get("judges", ())),
        leaks=tuple(leak_lines(figures.get("leak_findings", {}))),
        skipped=tuple(
            SkippedItems(stage, reason, count)
            for stage, reasons in figures.get("skipped", {}).items()
            for reason, count in reasons.items()
        ),
        exclusions=tuple(Exclusion.objects.filter(project=run.project).order_by("instance_id")),
    )


def cost_text(run: Run) -> str:
    """Return a run's cost. Calls of unknown price are named, never counted as free."""
    known, unknown = f"${run.cost.normalize():f}", run.cost_unknown_calls
    if not unknown:
        return known
    calls = f"{unknown} {'call' if unknown == 1 else 'calls'} of unknown cost"
    return f"{known} and {calls}" if run.cost else f"unknown ({calls})"


def markdown(report: RunReport) -> Iterator[str]:
    """Yield the report line by line, so that it may have any number of rows."""
    run = report.run
    yield f"# Duel run {run.pk} of {run.project.slug}\n\n"
    yield from _header(report)
    yield from _verdict(report)
    if report.leaks:
        yield "## Leaks\n\n" + "".join(f"- {_cell(line)}\n" for line in report.leaks) + "\n"
    yield from _skipped(report)
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
    yield f"**{'Accepted' if report.accepted else 'Undecided' if report.undecided else 'Not accepted'}**"
    yield (": " + "; ".join(report.reasons) if report.reasons else "") + "\n\n"
    yield f"- margin (challenger minus {report.opponent}, points): {report.margin}\n"
    yield f"- LCB, resampled by {report.clusters} (points): {report.lcb}\n"
    yield f"- LCB, resampled by turn (points): {report.lcb_unclustered}\n"
    yield f"- {report.without_leaks}\n- {_cell(report.basis)}\n\n"


def _skipped(report: RunReport) -> Iterator[str]:
    yield "## Skipped\n\n"
    for entry in report.skipped:
        yield f"- {entry.stage}: {entry.count} × {_cell(entry.reason)}\n"
    for exclusion in report.exclusions:
        yield f"- excluded instance {_cell(exclusion.instance_id)}: {_cell(exclusion.reason)}\n"
    yield "\n" if report.skipped or report.exclusions else "Nothing.\n\n"


def _judges(report: RunReport) -> Iterator[str]:
    yield "## Judges\n\n"
    yield _row(["judge", "duels", "win rate", "flip rate", "parse rate", "agreement", "tokens", "cost", "note"])
    yield _row(["---", *["---:"] * 7, "---"])
    for judge in report.judges:
        rates = [judge.win_rate, judge.flip_rate, judge.parse_rate, judge.agreement]
        yield _row([judge.name, judge.duels, *rates, judge.tokens, judge.cost, judge.note])
    yield "\n"
    for judge in report.judges:
        for sentence in judge.findings:
            yield f"- {_cell(judge.name)}: {_cell(sentence)}\n"
    yield "\n"


def _turns(rows: list[list[object]]) -> Iterator[str]:
    """Yield the turns as this run scored them (`curation.duels.score.stage.Scored.row`)."""
    known = _duels([int(str(row[0])) for row in rows])
    for pk, score, bucket, flags, metrics in rows:
        duel = known.get(pk)
        if duel is None:
            continue  # its prompt was deleted
        prompt = duel.prompt
        numbers = [_number(metric, 1) for metric in metrics] if isinstance(metrics, list) else []
        cells = [_number(score, 1), bucket, str(prompt), prompt.instance_id, duel.challenger.action_style, *numbers]
        yield _row([*cells, ", ".join(flag_names(int(str(flags))))])


def _duels(ids: list[int]) -> dict[object, Duel]:
    found: QuerySet[Duel] = Duel.objects.filter(pk__in=ids).select_related("prompt", "challenger")
    return {duel.pk: duel for duel in found}


CLUSTER_NAMES = {"repo": "repository", "instance_id": "pull request", "turn": "turn"}


def _clusters(figures: Mapping[str, object]) -> str:
    """Say what the lower bound resamples, such as "repository, 12 of them"."""
    name = CLUSTER_NAMES.get(str(figures.get("clustered_by")), "pull request")
    return f"{name}, {figures['clusters']} of them" if "clusters" in figures else name


def _without_leaks(figures: Mapping[str, object]) -> str:
    if not figures.get("leaks"):
        return "No parsed duel has a leak flag"
    margin, lcb = (_number(figures.get(f"{name}_without_leaks"), 1) for name in ("margin", "lcb"))
    return f"Without the {figures['leaks']} duels with a leak flag: margin {margin}, LCB {lcb} points"


def _judge_row(judge: Mapping[str, object]) -> JudgeRow:
    cost = judge["cost"]
    return JudgeRow(
        name=str(judge["name"]),
        duels=int(str(judge["n"])),
        win_rate=_percent(judge["win_rate"]),
        flip_rate=_percent(judge["flip_rate"]),
        parse_rate=_percent(judge["parse_rate"]),
        agreement=_percent(judge.get("panel_agreement", judge["agreement"])),
        tokens=int(str(judge["tokens"])),
        cost="unknown" if cost is None else f"${cost}",
        note=SELF_PREFERENCE if judge["same_family"] else "",
        findings=tuple(str(finding["sentence"]) for finding in _list(judge.get("findings"))),
    )


def _list(value: object) -> list[Mapping[str, object]]:
    return value if isinstance(value, list) else []


def _row(cells: list[object]) -> str:
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |\n"


# The characters of Markdown's syntax. Underscores have no meaning inside words, where names have them.
_ESCAPED = {ord(sign): f"\\{sign}" for sign in "\\|[]`*"} | {ord("<"): "&lt;", ord("&"): "&amp;"}


def _cell(value: object) -> str:
    """Return text on one line, with Markdown and control characters escaped."""
    line = " ".join(str(value).split())
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in line).translate(_ESCAPED)


def _number(value: object, digits: int) -> str:
    return f"{value:.{digits}f}" if isinstance(value, int | float) else "–"


def _percent(value: object) -> str:
    return f"{100 * value:.1f} %" if isinstance(value, int | float) else "–"
