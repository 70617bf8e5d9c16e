"""Create a prompt for each turn of a conversation, each once.

A turn is identified by its content: the instance, the messages before it and its own. So the same rows add nothing,
under any file name and at any offset, and a corrected file adds its corrected rows.

It is stored by the name of its source, the offset of its row and its index. If a row of that name has another text, the
file is a different one: the row and all later ones of the import get the name with the file's digest
(`turns.jsonl#1a2b3c4d`), so that two files of the same name do not replace each other.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import orjson

from curation.duels.imports.conversation import Conversation
from curation.duels.models import Prompt, PromptText
from curation.duels.prompts.doubts import compare_records
from curation.imports.insert import as_json, insert_rows, now_value, reserve_ids
from curation.imports.row_kinds import Target
from curation.projects.models import Project
from curation.samples.scans.store import scan_texts
from curation.web.lists.id_list import KeyList
from judging.messages import Message, content_of
from judging.scan.scan import texts_of

WantedRow = tuple[int, Conversation, list[int]]  # offset, conversation, indexes of the turns
BATCH = 1000
PROMPT_FIELDS = (
    "id",
    "project",
    "run",
    "imported_again",
    "source",
    "row_offset",
    "turn_index",
    "instance_id",
    "repo",
    "tokens",
    "content_hash",
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
    content_hash: str


def write_prompts(target: Target, rows: Sequence[WantedRow]) -> dict[str, int]:
    """Return the counts of `prompts` (new), `duplicates` (existing), those of them that are `copies` (their content was
    imported from another source), and records that the new turns make `doubtful`. Needs a transaction."""
    project = target.run.project
    # One import at a time writes to a project, so that nothing found missing is created meanwhile.
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    other = f"{target.source}#{target.digest[:8]}"
    hashes = [content_hashes(conversation) for _, conversation, _ in rows]
    known = _sources(project, {row[turn] for row, (_, _, turns) in zip(hashes, rows, strict=True) for turn in turns})
    of_offset: dict[int, set[str]] = {}
    for (offset, _, _), row_hashes in zip(rows, hashes, strict=True):
        of_offset.setdefault(offset, set()).update(row_hashes)
    taken = _taken_offsets(project, target.source, [offset for offset, _, _ in rows])
    counts = {"prompts": 0, "duplicates": 0, "copies": 0}
    characters = 0
    batch: list[_New] = []
    for (offset, conversation, turns), row_hashes in zip(rows, hashes, strict=True):
        new = [turn for turn in turns if row_hashes[turn] not in known]
        counts["duplicates"] += len(turns) - len(new)
        for turn in set(turns).difference(new):
            if known[row_hashes[turn]] not in (target.source, other):
                counts["copies"] += 1
                target.notes["copies_of"] = known[row_hashes[turn]]
        if taken.get(offset, set()) - of_offset[offset]:
            target.memory["other"] = True
        source = other if target.memory.get("other") else target.source
        sizes = _running_sizes(conversation.messages)
        for turn in new:
            known[row_hashes[turn]] = source
            batch.append(_New(source, offset, conversation, turn, sizes[turn] // 4, row_hashes[turn]))
            characters += sizes[turn]
            counts["prompts"] += 1
            if len(batch) >= BATCH or characters >= MAX_CHARACTERS:
                _write(target, batch)
                batch, characters = [], 0
    _write(target, batch)
    if counts["duplicates"]:
        found = Prompt.objects.of(project).filter(content_hash__in=KeyList(list(known)), imported_again=False)
        found.exclude(run=target.run).update(imported_again=True)
    if target.memory.get("other"):
        target.notes["also_as"] = other
    if counts["prompts"]:
        counts["doubtful"] = compare_records(project, {row.instance_id for _, row, _ in rows} - {""})
    return counts


def content_hashes(conversation: Conversation) -> list[str]:
    """Return 32 hex digits for each message: a digest of the instance, the tools and all messages up to it."""
    digest = hashlib.blake2b(conversation.instance_id.encode("utf-8", "surrogatepass"), digest_size=16)
    if conversation.tools:
        digest.update(b"\n" + orjson.dumps(conversation.tools, option=orjson.OPT_SORT_KEYS))
    hashes = []
    for message in conversation.messages:
        digest.update(b"\n" + orjson.dumps(message, option=orjson.OPT_SORT_KEYS))
        hashes.append(digest.hexdigest())
    return hashes


def _sources(project: Project, hashes: Iterable[str]) -> dict[str, str]:
    """Return the sources of the project's prompts by content."""
    found = Prompt.objects.of(project).filter(content_hash__in=KeyList(list(hashes))).order_by("-pk")
    return dict(found.values_list("content_hash", "source"))


def _taken_offsets(project: Project, source: str, offsets: Sequence[int]) -> dict[int, set[str]]:
    """Return the contents of existing prompts of a source by offset."""
    taken: dict[int, set[str]] = {}
    if offsets:
        found = Prompt.objects.of(project).filter(source=source, row_offset__range=(min(offsets), max(offsets)))
        for offset, content_hash in found.values_list("row_offset", "content_hash"):
            taken.setdefault(offset, set()).add(content_hash)
    return taken


def _running_sizes(messages: Sequence[Message]) -> list[int]:
    """Return the characters before each message: texts, and tool calls as JSON."""
    sizes, total = [], 0
    for message in messages:
        sizes.append(total)
        total += len(content_of(message))
        if "tool_calls" in message:
            total += len(orjson.dumps(message["tool_calls"]))
    return sizes


def _write(target: Target, batch: list[_New]) -> None:
    # All turns of a row share its messages, so each is scanned once.
    rows = {id(new.conversation): new.conversation for new in batch}
    scan_texts(text for conversation in rows.values() for text in texts_of(conversation.messages))
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
                False,
                new.source,
                new.offset,
                new.conversation.start + new.turn,
                new.conversation.instance_id,
                new.conversation.repo,
                new.tokens,
                new.content_hash,
                now,
            )
            for pk, new in zip(ids, batch, strict=True)
        ],
    )
    insert_rows(
        PromptText,
        ("prompt", "history", "reference", "tools"),
        [
            (
                pk,
                as_json(new.conversation.messages[: new.turn]),
                as_json(new.conversation.messages[new.turn]),
                as_json(new.conversation.tools),
            )
            for pk, new in zip(ids, batch, strict=True)
        ],
    )
