"""Create a prompt for each turn of a conversation, each once.

A turn is identified by the name of its source, the offset of its row and its index. If a row of that name has another
text, the file is a different one: the row and all later ones of the import get the name with the file's digest
(`turns.jsonl#1a2b3c4d`). So a corrected file adds its corrected rows, the same file adds nothing, and two files of the
same name do not replace each other.
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
BATCH = 1000
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
# Each prompt of a row repeats the history, so the size grows with the square of the row's length.
MAX_CHARACTERS = 8_000_000


class _New(NamedTuple):
    """A turn to write. `tokens` are those of its history."""

    source: str
    offset: int
    conversation: Conversation
    turn: int
    tokens: int


def write_prompts(target: Target, rows: Sequence[WantedRow]) -> dict[str, int]:
    """Return the counts of `prompts` (new) and `duplicates` (existing). Needs a transaction."""
    project = target.run.project
    # One import at a time writes to a project, so that nothing found missing is created meanwhile.
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    other = f"{target.source}#{target.digest[:8]}"
    existing = {source: _existing(project, source, rows) for source in (target.source, other)}
    made = duplicates = characters = 0
    batch: list[_New] = []
    for offset, conversation, turns in rows:
        source = _source_of(target, other, existing, offset, conversation)
        there = existing[source].get(offset, {})
        sizes = _running_sizes(conversation.messages)
        for turn in turns:
            if turn in there:
                duplicates += 1
                continue
            batch.append(_New(source, offset, conversation, turn, sizes[turn] // 4))
            characters += sizes[turn]
            made += 1
            if len(batch) >= BATCH or characters >= MAX_CHARACTERS:
                _write(target, batch)
                batch, characters = [], 0
    _write(target, batch)
    if target.memory.get("other"):
        target.notes["also_as"] = other
    return {"prompts": made, "duplicates": duplicates}


def _existing(project: Project, source: str, rows: Sequence[WantedRow]) -> dict[int, dict[int, int]]:
    """Return the ids of existing prompts by offset and turn index."""
    offsets = [offset for offset, _, _ in rows]
    if not offsets:
        return {}
    found = Prompt.objects.of(project).filter(source=source, row_offset__range=(min(offsets), max(offsets)))
    existing: dict[int, dict[int, int]] = {}
    for offset, turn, pk in found.values_list("row_offset", "turn_index", "pk"):
        existing.setdefault(offset, {})[turn] = pk
    return existing


def _source_of(
    target: Target, other: str, existing: dict[str, dict[int, dict[int, int]]], offset: int, conversation: Conversation
) -> str:
    """Return the name under which a row is, or will be, stored."""
    there = existing[target.source].get(offset)
    if there:
        if _same(there, conversation):
            return target.source
        target.memory["other"] = True
        return other
    return other if target.memory.get("other") else target.source


def _same(there: dict[int, int], conversation: Conversation) -> bool:
    """Compare with the last existing turn, whose history has all earlier ones."""
    turn = max(there)
    kept = PromptText.objects.filter(pk=there[turn]).first()
    return kept is not None and [*kept.history, kept.reference] == conversation.messages[: turn + 1]


def _running_sizes(messages: list[Message]) -> list[int]:
    """Return the characters before each message: texts, and tool calls as JSON."""
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
