"""The steps of a live episode as its page shows them."""

from collections.abc import Iterator, Mapping

import orjson

from curation.evaluations.models import Episode
from curation.web.text.markup import code_html, visible, without_colours
from curation.web.text.transcript import Fact, Piece, Step
from sandbox.agent.environment import Observation
from sandbox.agent.live import ERROR, OUTPUT, PROGRESS


def steps_of(episode: Episode) -> list[Step]:
    """The trace as steps. Needs `text`."""
    return [_step(number, step) for number, step in enumerate(episode.text.trace, 1) if isinstance(step, dict)]


def _step(number: int, step: Mapping[str, object]) -> Step:
    given = step.get("observation")
    seen = Observation("", given if isinstance(given, dict) else {})
    action, output = str(step.get("action") or ""), seen.observed(OUTPUT)
    details = {
        "Prompt": str(step.get("prompt", "")),
        "Reply": str(step.get("reply", "")),
        "Thinking": str(step.get("thinking") or ""),
        "Observation": orjson.dumps(seen.fields, option=orjson.OPT_INDENT_2, default=str).decode(),
    }
    return Step(
        number=number,
        command=Piece(number, code_html(action)) if action else None,
        output=Piece(number, visible(without_colours(output))) if isinstance(output, str) and output else None,
        note="no command",
        facts=tuple(_facts(step, seen)),
        error=visible(str(seen.observed(ERROR) or "")),
        details=tuple((title, visible(text)) for title, text in details.items() if text or title != "Thinking"),
    )


def _facts(step: Mapping[str, object], seen: Observation) -> Iterator[Fact]:
    reward = step.get("reward")
    progress = step.get("progress") if step.get("progress") is not None else seen.observed(PROGRESS)
    if step.get("format_failure"):
        yield Fact("no command in the reply", "bad")
    if step.get("hint"):
        yield Fact("hint", "attention")
    if outcome := seen.fields.get("outcome"):
        yield Fact(str(outcome).replace("_", " "))
    yield Fact("reward –" if reward is None else f"reward {reward:.2f}")
    yield Fact(f"progress {100 * progress:.0f}%" if isinstance(progress, int | float) else "progress –")
