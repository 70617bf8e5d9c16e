"""What the pages of live episodes show, computed here since templates compute nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson
from django.utils.safestring import SafeString

from curation.evaluations.live.figures import live_rows, live_tiers
from curation.evaluations.models import Episode, EvaluatedModel, Evaluation
from curation.evaluations.screen.figures import Row
from curation.runs.models import LIVE
from curation.web.text.markup import code_html, visible
from curation.web.text.transcript import render_output
from sandbox.agent.environment import Observation
from sandbox.agent.live import ERROR, OUTPUT, PROGRESS

# Column by column: the API's name, what the head says, what it means, its unit, and what a narrow list drops first.
HEADS: Mapping[str, tuple[str, str, str, str]] = {
    "completion_rate": ("completed", "Share of episodes whose task was achieved", "%", ""),
    "avg_steps_to_complete": ("steps", "Mean steps of the completed episodes", "", ""),
    "avg_max_progress": ("progress", "Mean of the furthest that each episode came", "%", "col-2"),
    "terminal_reward": ("last reward", "Mean reward of the last step", "", ""),
    "avg_reward_per_step": ("per step", "Summed reward over steps", "", "col-3"),
    "avg_episode_reward": ("summed", "Mean summed reward: it can pay for stalling", "", "col-2"),
    "reward_std": ("± sum", "Standard deviation of the summed rewards", "", "col-4"),
    "hint_usage_rate": ("hints", "Share of episodes that asked for a hint", "%", "col-3"),
    "format_failure_rate": ("no command", "Share of steps whose reply held no command", "%", "col-2"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LiveHead:
    label: str
    title: str
    drop: str


@dataclass(frozen=True, slots=True)
class LiveCell:
    """`interval` is the 95 % interval of a rate, in percent."""

    value: str
    unit: str
    interval: str
    drop: str


@dataclass(frozen=True, slots=True)
class LiveLine:
    rank: int
    model: str
    n: int
    errors: int
    cells: tuple[LiveCell, ...]


@dataclass(frozen=True, slots=True)
class LiveTable:
    title: str
    heads: tuple[LiveHead, ...]
    lines: tuple[LiveLine, ...]


@dataclass(frozen=True, slots=True)
class LivePage:
    evaluation: Evaluation
    live: bool
    done: int
    total: int
    table: LiveTable
    tiers: tuple[LiveTable, ...]
    models: Sequence[EvaluatedModel]
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class StepLine:
    """One step of a trace, every text in it made harmless."""

    number: int
    action: SafeString
    output: SafeString
    error: SafeString
    reward: str
    progress: str
    format_failure: bool
    hint: bool
    outcome: str
    prompt: SafeString
    reply: SafeString
    thinking: SafeString
    fields: SafeString


def live_page(evaluation: Evaluation) -> LivePage:
    run, params = evaluation.run, evaluation.params
    live = run.state in LIVE
    facts = (
        ("Environment", str(params.get("environment", ""))),
        ("Steps at most", str(params.get("max_steps", ""))),
        ("Command family", str(evaluation.family.get("name", ""))),
    )
    return LivePage(
        evaluation=evaluation,
        live=live,
        done=run.items_done + run.items_failed + run.items_skipped,
        total=run.items_total,
        table=live_table("", live_rows(evaluation)),
        tiers=() if live else _tiers(evaluation),
        models=list(evaluation.models.order_by("place")),
        facts=facts,
    )


def _tiers(evaluation: Evaluation) -> tuple[LiveTable, ...]:
    return tuple(
        live_table(f"Tier {group.name}" if group.name else "No tier", group.rows) for group in live_tiers(evaluation)
    )


def live_table(title: str, rows: Sequence[Row]) -> LiveTable:
    heads = tuple(LiveHead(label, meaning, drop) for label, meaning, _, drop in HEADS.values())
    return LiveTable(title, heads, tuple(map(_line, rows)))


def steps_of(episode: Episode) -> list[StepLine]:
    """The trace, ready to be shown. Needs the text."""
    return [_step(number, step) for number, step in enumerate(episode.text.trace, 1) if isinstance(step, dict)]


def _line(row: Row) -> LiveLine:
    intervals = row["intervals"] if isinstance(row["intervals"], dict) else {}
    cells = tuple(_cell(name, row[name], intervals.get(name)) for name in HEADS)
    rank, n, errors = (int(str(row[name])) for name in ("rank", "n", "errors"))
    return LiveLine(rank, str(row["model"]), n, errors, cells)


def _cell(name: str, value: object, ends: object) -> LiveCell:
    _, _, unit, drop = HEADS[name]
    if not isinstance(value, int | float):
        return LiveCell("–", "", "", drop)
    interval = f"{100 * ends[0]:.0f}–{100 * ends[1]:.0f}" if isinstance(ends, list | tuple) and len(ends) == 2 else ""
    return LiveCell(f"{100 * value:.0f}" if unit == "%" else f"{value:.2f}", unit, interval, drop)


def _step(number: int, step: Mapping[str, object]) -> StepLine:
    given = step.get("observation")
    seen = Observation("", given if isinstance(given, dict) else {})
    output = seen.observed(OUTPUT)
    progress = step.get("progress") if step.get("progress") is not None else seen.observed(PROGRESS)
    return StepLine(
        number=number,
        action=code_html(str(step.get("action", ""))),
        output=render_output(output) if isinstance(output, str) and output else SafeString(),
        error=visible(str(seen.observed(ERROR) or "")),
        reward="–" if step.get("reward") is None else f"{step['reward']:.2f}",
        progress=f"{100 * progress:.0f}%" if isinstance(progress, int | float) else "–",
        format_failure=bool(step.get("format_failure")),
        hint=bool(step.get("hint")),
        outcome=str(seen.fields.get("outcome", "")).replace("_", " "),
        prompt=visible(str(step.get("prompt", ""))),
        reply=visible(str(step.get("reply", ""))),
        thinking=visible(str(step.get("thinking") or "")),
        fields=visible(orjson.dumps(seen.fields, option=orjson.OPT_INDENT_2, default=str).decode()),
    )
