"""Turns of conversations become prompts, each once.

A turn is known by its source's name, its row's offset and its index. Where the same name already holds another text at
a row, the file is another one: such rows are kept under the name with the file's digest (`turns.jsonl#1a2b3c4d`), and
whatever follows in this import too. So a corrected file adds its corrected rows, the same file adds nothing, and two
files that happen to have one name do not hide each other.
"""

from collections.abc import Sequence
from typing import NamedTuple, cast

import orjson

from curation.duels.imports.layouts import Conversation, Message
from curation.duels.models import Prompt, PromptText
from curation.imports.insert import as_json, insert_rows, now_value, reserve_ids
from curation.imports.row_kinds import Target
from curation.projects.models import Project

WantedRow = tuple[int, Conversation, list[int]]  # offset, conversation, indexes of the turns
TOGETHER = 1000
PROMPT_FIELDS = (
    "id",
    "project",
    "run",
    "source",
    "row_offset",
    "turn_index",
    "instance_id",
    "repo",
    "tokens",
    "created_at",
)
# Histories repeat, so a long row grows by its square when it is written: this many characters leave at once.
MOST_CHARACTERS = 8_000_000


class _New(NamedTuple):
    """A turn that is to be written; `tokens` are those of its history."""

    source: str
    offset: int
    conversation: Conversation
    turn: int
    tokens: int


def write_prompts(target: Target, rows: Sequence[WantedRow]) -> dict[str, int]:
    """Needs a transaction. Returns `prompts` (new) and `duplicates` (there already)."""
    project = target.run.project
    # One import at a time writes to a project: what is found missing is still missing when it is written.
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    other = f"{target.source}#{target.digest[:8]}"
    held = {source: _held(project, source, rows) for source in (target.source, other)}
    made = duplicates = characters = 0
    batch: list[_New] = []
    for offset, conversation, turns in rows:
        source = _source_of(target, other, held, offset, conversation)
        there = held[source].get(offset, {})
        sizes = _running_sizes(conversation.messages)
        for turn in turns:
            if turn in there:
                duplicates += 1
                continue
            batch.append(_New(source, offset, conversation, turn, sizes[turn] // 4))
            characters += sizes[turn]
            made += 1
            if len(batch) >= TOGETHER or characters >= MOST_CHARACTERS:
                _write(target, batch)
                batch, characters = [], 0
    _write(target, batch)
    if target.memory.get("other"):
        target.notes["also_as"] = other
    return {"prompts": made, "duplicates": duplicates}


def _held(project: Project, source: str, rows: Sequence[WantedRow]) -> dict[int, dict[int, int]]:
    """offset → turn index → prompt id, of what is there already."""
    offsets = [offset for offset, _, _ in rows]
    if not offsets:
        return {}
    found = Prompt.objects.of(project).filter(source=source, row_offset__range=(min(offsets), max(offsets)))
    held: dict[int, dict[int, int]] = {}
    for offset, turn, pk in found.values_list("row_offset", "turn_index", "pk"):
        held.setdefault(offset, {})[turn] = pk
    return held


def _source_of(
    target: Target, other: str, held: dict[str, dict[int, dict[int, int]]], offset: int, conversation: Conversation
) -> str:
    """The name under which a row stands or is to be written."""
    there = held[target.source].get(offset)
    if there:
        if _same(there, conversation):
            return target.source
        target.memory["other"] = True
        return other
    return other if target.memory.get("other") else target.source


def _same(there: dict[int, int], conversation: Conversation) -> bool:
    """Compares the last turn that is there, whose history holds all that came before it."""
    turn = max(there)
    kept = PromptText.objects.filter(pk=there[turn]).first()
    return kept is not None and [*kept.history, kept.reference] == conversation.messages[: turn + 1]


def _running_sizes(messages: list[Message]) -> list[int]:
    """Characters before each message: texts, and tool calls as JSON."""
    sizes, total = [], 0
    for message in messages:
        sizes.append(total)
        total += len(cast(str, message["content"]))
        if "tool_calls" in message:
            total += len(orjson.dumps(message["tool_calls"]))
    return sizes


def _write(target: Target, batch: list[_New]) -> None:
    ids = reserve_ids(Prompt, len(batch))
    project, run, now = target.run.project_id, target.run.pk, now_value()
    insert_rows(
        Prompt,
        PROMPT_FIELDS,
        [
            (
                pk,
                project,
                run,
                new.source,
                new.offset,
                new.turn,
                new.conversation.instance_id,
                new.conversation.repo,
                new.tokens,
                now,
            )
            for pk, new in zip(ids, batch, strict=True)
        ],
    )
    insert_rows(
        PromptText,
        ("prompt", "history", "reference"),
        [
            (pk, as_json(new.conversation.messages[: new.turn]), as_json(new.conversation.messages[new.turn]))
            for pk, new in zip(ids, batch, strict=True)
        ],
    )
