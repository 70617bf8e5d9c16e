"""The steps of a live episode as its page shows them."""

from collections.abc import Mapping
from dataclasses import dataclass

import orjson
from django.utils.safestring import SafeString

from curation.evaluations.models import Episode
from curation.web.text.markup import code_html, visible
from curation.web.text.transcript import render_output
from sandbox.agent.environment import Observation
from sandbox.agent.live import ERROR, OUTPUT, PROGRESS


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


def steps_of(episode: Episode) -> list[StepLine]:
    """The trace, ready to be shown. Needs the text."""
    return [_step(number, step) for number, step in enumerate(episode.text.trace, 1) if isinstance(step, dict)]


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
