"""Scripted models of the static screen: a "base" and a "tuned" one that read their answers from one written table."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from judging.messages import content_of

WRITTEN = Path(__file__).with_name("cli_answers.json")
# What either says to a prompt that nobody wrote an answer for: it knows nothing, and does not pretend to.
UNKNOWN = {"base": "I am not sure which command fits.", "tuned": "aws help"}


@cache
def cli_answers() -> Mapping[str, Mapping[str, str]]:
    """By the last user message: what `base` and what `tuned` answer."""
    answers: Mapping[str, Mapping[str, str]] = json.loads(WRITTEN.read_text(encoding="utf-8"))
    return answers


def cli_answer(who: str, messages: Sequence[Mapping[str, object]]) -> str:
    asked = next((content_of(m) for m in reversed(messages) if m.get("role") == "user"), "")
    return cli_answers().get(asked, UNKNOWN)[who]
