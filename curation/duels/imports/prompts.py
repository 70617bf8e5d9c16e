"""Create a prompt for each turn of a conversation, each once.

A turn is identified by its content: the instance, the messages before it and its own. So the same rows add nothing,
under any file name and at any offset, and a corrected file adds its corrected rows.

It is stored by the name of its source, the offset of its row and its index. If a row of that name has another text, the
file is a different one: the row and all later ones of the import get the name with the file's digest
(`turns.jsonl#1a2b3c4d`), so that two files of the same name do not replace each other.

Messages are stored once: the calls of a traced agent and the rows of one session begin alike. A row whose history
begins another row of its chunk uses that one's session. A stored session that begins a later row grows by the rest.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import orjson

from curation.duels.imports.conversation import Conversation, length_of
from curation.duels.models import Prompt, PromptText, Session
from curation.duels.prompts.doubts import compare_records
from curation.imports.insert import as_json, insert_rows, now_value, reserve_ids
from curation.imports.row_kinds import ImportTarget
from curation.projects.models import Project
from curation.samples.texts import scan_texts
from curation.web.ids import KeyList
from judging.messages import Message
from judging.scan.scan import texts_of


class HashedRow(NamedTuple):
    """A row, whose prompts have the name `source`. `turns` are the wanted ones, and `hashes` those of its messages
    (`content_hashes`).

    `length` is the number of messages before the last turn, wanted or not, and `session_digest` the hash of the last of
    these.
    """

    offset: int
    conversation: Conversation
    turns: Sequence[int]
    hashes: Sequence[str]
    length: int
    session_digest: str
    source: str = ""

    @classmethod
    def of(cls, offset: int, conversation: Conversation, turns: Sequence[int]) -> "HashedRow":
        hashes, length = content_hashes(conversation), max(conversation.turns)
        return cls(offset, conversation, turns, hashes, length, hashes[length - 1])


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


def write_sessions(target: ImportTarget, rows: Sequence[HashedRow]) -> dict[str, int]:
    """Return the ids of the rows' sessions by their digests. Needs the lock of the project."""
    longest: dict[str, HashedRow] = {}
    for row in sorted(rows, key=lambda row: row.length, reverse=True):
        for digest in row.hashes[: row.length]:
            longest.setdefault(digest, row)
    project = target.run.project_id
    stored = Session.objects.filter(project=project, digest__in=KeyList(list(longest)))
    known = dict(stored.order_by("pk").values_list("digest", "pk"))
    wanted = {row.session_digest: row for row in (longest[row.session_digest] for row in rows)}
    ids: dict[str, int] = {}
    for digest, row in wanted.items():
        # A session that has grown begins no other row.
        begun = next((one for one in reversed(row.hashes[: row.length]) if one in known), None)
        if begun is None:
            continue
        ids[digest] = known.pop(begun)
        if begun != digest:
            grown = list(row.conversation.messages[: row.length])
            Session.objects.filter(pk=ids[digest]).update(digest=digest, messages=grown, trajectory=None)
    new = [row for digest, row in wanted.items() if digest not in ids]
    ids |= zip((row.session_digest for row in new), reserve_ids(Session, len(new)), strict=True)
    insert_rows(
        Session,
        ("id", "project", "run", "digest", "messages", "tools", "trajectory"),
        [
            (
                ids[row.session_digest],
                project,
                target.run.pk,
                row.session_digest,
                None if row.conversation.trajectory else as_json(row.conversation.messages[: row.length]),
                as_json(row.conversation.tools),
                row.conversation.trajectory,
            )
            for row in new
        ],
    )
    return {row.session_digest: ids[longest[row.session_digest].session_digest] for row in rows}


WantedRow = tuple[int, Conversation, list[int]]  # offset, conversation, indexes of the turns
PROMPT_FIELDS = (
    *("project", "run", "imported_again", "created_at", "id", "source", "row_offset", "turn_index", "instance_id"),
    *("repo", "tokens", "content_hash"),
)


def write_prompts(target: ImportTarget, rows: Sequence[WantedRow]) -> dict[str, int]:
    """Return the counts of `prompts` (new), `duplicates` (existing), those of them that are `copies` (their content was
    imported from another source), and records that the new turns make `doubtful`. Needs a transaction."""
    project = target.run.project
    # One import at a time writes to a project, so that nothing found missing is created meanwhile.
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    other = f"{target.source}#{target.digest[:8]}"
    hashed = [HashedRow.of(*row) for row in rows]
    known = _sources(project, {row.hashes[turn] for row in hashed for turn in row.turns})
    of_offset: dict[int, set[str]] = {}
    for row in hashed:
        of_offset.setdefault(row.offset, set()).update(row.hashes)
    taken = _used_offsets(project, target.source, [row.offset for row in hashed])
    counts = {"prompts": 0, "duplicates": 0, "copies": 0}
    batch: list[HashedRow] = []
    for row in hashed:
        new = [turn for turn in row.turns if row.hashes[turn] not in known]
        counts["duplicates"] += len(row.turns) - len(new)
        for turn in set(row.turns).difference(new):
            if known[row.hashes[turn]] not in (target.source, other):
                counts["copies"] += 1
                target.notes["copies_of"] = known[row.hashes[turn]]
        if taken.get(row.offset, set()) - of_offset[row.offset]:
            target.memory["other"] = True
        source = other if target.memory.get("other") else target.source
        known |= {row.hashes[turn]: source for turn in new}
        if new:
            batch.append(row._replace(turns=new, source=source))
            counts["prompts"] += len(new)
    if batch:
        _write(target, batch)
    if counts["duplicates"]:
        found = Prompt.objects.of(project).filter(content_hash__in=KeyList(list(known)), imported_again=False)
        found.exclude(run=target.run).update(imported_again=True)
    if target.memory.get("other"):
        target.notes["also_as"] = other
    if counts["prompts"]:
        counts["doubtful"] = compare_records(project, {one.instance_id for _, one, _ in rows} - {""})
    return counts


def _sources(project: Project, hashes: Iterable[str]) -> dict[str, str]:
    found = Prompt.objects.of(project).filter(content_hash__in=KeyList(list(hashes))).order_by("-pk")
    return dict(found.values_list("content_hash", "source"))


def _used_offsets(project: Project, source: str, offsets: Sequence[int]) -> dict[int, set[str]]:
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
        total += length_of(message)
        if "tool_calls" in message:
            total += len(orjson.dumps(message["tool_calls"]))
    return sizes


def _write(target: ImportTarget, rows: Sequence[HashedRow]) -> None:
    # All turns of a row share its messages, so each is scanned once.
    scan_texts(text for row in rows for text in texts_of(row.conversation.messages))
    sessions = write_sessions(target, rows)
    ids = iter(reserve_ids(Prompt, sum(len(row.turns) for row in rows)))
    same = (target.run.project_id, target.run.pk, False, now_value())
    prompts, texts = [], []
    for row in rows:
        one, sizes = row.conversation, _running_sizes(row.conversation.messages)
        for turn in row.turns:
            pk, tokens = next(ids), sizes[turn] // 4
            place = (row.source, row.offset, one.start + turn, one.instance_id, one.repo)
            prompts.append((*same, pk, *place, tokens, row.hashes[turn]))
            texts.append((pk, sessions[row.session_digest], turn, as_json(one.messages[turn])))
    insert_rows(Prompt, PROMPT_FIELDS, prompts)
    insert_rows(PromptText, ("prompt", "session", "at", "reference"), texts)
