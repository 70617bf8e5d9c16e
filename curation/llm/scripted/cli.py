"""Scripted models of the static screen: "base" and "tuned", with answers from one written table."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from judging.messages import content_of

WRITTEN = Path(__file__).with_name("cli_answers.json")
# The answers to any other prompt.
UNKNOWN = {"base": "I am not sure which command fits.", "tuned": "aws help"}


@cache
def cli_answers() -> Mapping[str, Mapping[str, str]]:
    """Last user message → the answers of `base` and `tuned`."""
    answers: Mapping[str, Mapping[str, str]] = json.loads(WRITTEN.read_text(encoding="utf-8"))
    return answers


def cli_answer(model: str, messages: Sequence[Mapping[str, object]]) -> str:
    prompt = next((content_of(m) for m in reversed(messages) if m.get("role") == "user"), "")
    return cli_answers().get(prompt, UNKNOWN)[model]
