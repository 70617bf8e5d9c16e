"""Store the messages of rows once: prompts are positions in them.

Many rows begin alike: the calls of one traced agent, and rows that were made of one session. A row whose history begins
another row of the same chunk uses the other's session. A stored session that begins a later row grows by the rest.
"""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import orjson

from curation.duels.imports.conversation import Conversation
from curation.duels.models import Session
from curation.imports.insert import as_json, insert_rows, reserve_ids
from curation.imports.row_kinds import ImportTarget
from curation.web.lists.id_list import KeyList


class HashedRow(NamedTuple):
    """A row of a source. `turns` are the wanted ones, and `hashes` those of its messages (`content_hashes`)."""

    offset: int
    conversation: Conversation
    turns: Sequence[int]
    hashes: Sequence[str]

    @property
    def length(self) -> int:
        """The number of messages before the last turn, wanted or not."""
        return max(self.conversation.turns)

    @property
    def session_digest(self) -> str:
        return self.hashes[self.length - 1]


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
