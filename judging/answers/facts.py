"""Facts about an answer that are computed, not judged: thought, blocks, commands, action style."""

import re
from dataclasses import dataclass

from judging.answers.action_style import action_style
from judging.answers.blocks import bash_blocks
from judging.shell.script import split_commands

_LABEL = re.compile(r"\b(?:THOUGHTS?|DISCUSSION|REASONING)\b[\s:*_#-]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AnswerFacts:
    """`blocks` counts the shell blocks, `commands` the commands in all of them; `action_style` is of the first one.

    `has_thought`: there is reasoning in words before the first block (anywhere if there is no block), with or without
    the label THOUGHT; the label alone is no thought.
    """

    has_thought: bool
    blocks: int
    commands: int
    action_style: str


def answer_facts(text: str) -> AnswerFacts:
    """Compute the facts of one answer without its thinking."""
    blocks = bash_blocks(text)
    commands = [split_commands(block.script) for block in blocks]
    style = action_style(commands[0]) if commands else "other"
    return AnswerFacts(_has_thought(text), len(blocks), sum(len(found) for found in commands), style)


def _has_thought(text: str) -> bool:
    before = re.split(r"(?m)^[ \t]*(?:`{3,}|~{3,})", text, maxsplit=1)[0]
    return len(re.findall(r"[^\W\d_]{2,}", _LABEL.sub(" ", before))) >= 2
