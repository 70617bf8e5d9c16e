import json
import random
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pytest

from curation.imports.layouts.folder import DocumentFolder
from curation.imports.layouts.groups import GroupKind, group_files
from curation.imports.layouts.session import SessionOutcome
from tests.imports.layouts.golden import GOLDEN, documents, golden, packed


def lines(*values: object) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def trajectory(message: str, **fields: object) -> dict[str, object]:
    steps = [{"step_id": 1, "source": "user", "message": message}]
    return {"schema_version": "ATIF-v1.8", "agent": {"name": "a", "version": "1"}, "steps": steps, **fields}


def first_messages(folder: DocumentFolder) -> dict[str, list[object]]:
    found = documents(folder)
    return {
        name: [session.steps[0]["message"] for session in one.reading.sessions]
        for name, one in found.items()
        if one.reading
    }


def test_files_that_belong_together_are_one_group() -> None:
    names = [
        "job/config.json",
        "job/job.log",
        "job/result.json",
        "job/t__1/config.json",
        "job/t__1/result.json",
        "job/t__1/agent/trajectory.json",
        "job/t__1/artifacts/app/config.json",
        "job/t__1/artifacts/app/result.json",
        "claude/s.jsonl",
        "claude/s/subagents/agent-1.jsonl",
        "rows.jsonl",
        "rows/more.json",
    ]
    found = {(group.kind, group.root, group.main): list(group.names) for group in group_files(names)}
    assert found[GroupKind.JOB, "job/", ""] == ["config.json", "job.log", "result.json"]
    assert len(found[GroupKind.TRIAL, "job/t__1/", ""]) == 5
    assert found[GroupKind.FILE, "claude/", "s.jsonl"] == ["s.jsonl", "s/subagents/agent-1.jsonl"]
    assert found[GroupKind.FILE, "rows/", "more.json"] == ["more.json"]


def test_atif_as_a_document_a_list_and_lines() -> None:
    files = {
        "one.json": json.dumps(trajectory("one")).encode(),
        "list.json": json.dumps([trajectory("first"), trajectory("second")]).encode(),
        "lines.jsonl": lines(trajectory("first"), trajectory("second")),
    }
    assert first_messages(packed(files)) == {
        "one.json": ["one"],
        "list.json:1": ["first"],
        "list.json:2": ["second"],
        "lines.jsonl:1": ["first"],
        "lines.jsonl:2": ["second"],
    }


def test_a_continuation_is_read_with_the_trajectory_that_names_it() -> None:
    named = trajectory("first", continued_trajectory_ref="trajectory.cont-1.json")
    files = {"a/trajectory.json": json.dumps(named).encode()}
    files["a/trajectory.cont-1.json"] = json.dumps(trajectory("later")).encode()
    folder = packed(files)
    found = documents(folder)
    assert list(found) == ["a/trajectory.json"]
    reading = found["a/trajectory.json"].reading
    assert reading and reading.sessions[0].subagents[0].steps[0]["message"] == "later"
    assert set(folder.became.values()) == {"ATIF"}


def test_rows_of_data_are_handed_on_with_their_place() -> None:
    chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    files = {
        "rows.jsonl": lines({"messages": chat}, [1], chat),
        "chat.json": json.dumps(chat).encode(),
        "notes.txt": b"hello",
    }
    folder = packed(files)
    found = documents(folder)
    row = found["rows.jsonl:1"].row
    assert row and (row.file, row.value) == ("rows.jsonl", {"messages": chat})
    assert found["rows.jsonl:2"].refused == "not an object but a list"
    row = found["rows.jsonl:3"].row
    assert row and row.value == {"messages": chat}
    assert found["chat.json"].row and found["chat.json"].row.value == {"messages": chat}
    assert folder.became == {"rows.jsonl": "rows", "chat.json": "row", "notes.txt": "ignored: no layout reads it"}


def test_reading_continues_at_a_group() -> None:
    whole = list(golden("swe_agent").documents())
    start = whole[2][0]
    after = [(number, one.name) for number, one in golden("swe_agent").documents(start)]
    assert after == [(number, one.name) for number, one in whole[2:]]


def test_reading_continues_in_the_middle_of_a_file() -> None:
    rows = [trajectory(str(number)) for number in range(4)]
    folder = packed({"a.jsonl": lines(*rows), "b.json": json.dumps(rows).encode()})
    whole = list(folder.documents())
    for number, (group, document) in enumerate(whole, 1):
        rest = [one.name for _, one in folder.documents(group, document.after)]
        assert rest == [one.name for _, one in whole[number:]]


def test_the_nearest_report_decides() -> None:
    row = {"instance_id": "i-1", "test_result": {}, "history": [{"source": "user", "action": "message", "args": {}}]}
    files = {
        "report.json": json.dumps({"resolved_ids": ["i-1"]}).encode(),
        "a/output.jsonl": lines(row),
        "a/report.json": json.dumps({"resolved_ids": [], "completed_ids": ["i-1"]}).encode(),
        "b/output.jsonl": lines(row),
    }
    found = documents(packed(files))
    outcomes = {name: one.reading.sessions[0].verdict.outcome for name, one in found.items() if one.reading}
    assert outcomes == {"a/output.jsonl:1": SessionOutcome.FAILED, "b/output.jsonl:1": SessionOutcome.SOLVED}


def test_a_document_that_is_too_long_is_refused_and_others_are_read() -> None:
    content = {"a.json": json.dumps(trajectory("x" * 500)).encode(), "b.json": json.dumps(trajectory("b")).encode()}
    folder = DocumentFolder(list(content), lambda name: BytesIO(content[name]), longest=400)
    found = documents(folder)
    assert found["a.json"].refused.startswith("a.json is longer than")
    assert found["b.json"].reading


class Counted(BytesIO):
    """A file that counts how many are open."""

    most = now = 0

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        Counted.now += 1
        Counted.most = max(Counted.most, Counted.now)

    def close(self) -> None:
        Counted.now -= not self.closed
        super().close()


def test_files_are_open_one_at_a_time() -> None:
    content = {f"{number}.json": json.dumps(trajectory("a")).encode() for number in range(20)}

    def read() -> Iterator[str]:
        yield from (
            document.name
            for _, document in DocumentFolder(list(content), lambda name: Counted(content[name])).documents()
        )

    assert len(list(read())) == 20
    assert (Counted.most, Counted.now) == (1, 0)


ODD: list[Any] = [None, True, -1, 1e300, 10**30, "", "x", [], {}, [None], {"a": 1}, {"role": "user"}, "\ud800"]


def spoil(value: Any, chance: random.Random, share: float) -> Any:
    """A value in which some values are of another kind, and some are missing."""
    if chance.random() < share:
        return chance.choice(ODD)
    if isinstance(value, dict):
        return {key: spoil(one, chance, share) for key, one in value.items() if chance.random() > share / 2}
    return [spoil(one, chance, share) for one in value] if isinstance(value, list) else value


def spoiled(content: bytes, chance: random.Random) -> bytes:
    share = chance.choice((0.02, 0.05, 0.15))
    try:
        values = [json.loads(line) for line in content.splitlines()]
    except ValueError:
        try:
            return json.dumps(spoil(json.loads(content), chance, share)).encode()
        except ValueError:
            return content[: chance.randrange(len(content) + 1)]
    return b"\n".join(json.dumps(spoil(value, chance, share)).encode() for value in values)


@pytest.mark.parametrize("layout", sorted(path.name for path in GOLDEN.iterdir()))
def test_values_of_another_kind_refuse_their_document_and_no_other(layout: str) -> None:
    files = {name: (GOLDEN / layout / name).read_bytes() for name in golden(layout).names}
    for number in range(30):
        chance = random.Random(number)
        given = {name: spoiled(content, chance) for name, content in files.items()}
        whole = json.dumps({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]})
        found = documents(packed({**given, "zz-sound/rows.jsonl": whole.encode()}))
        assert found["zz-sound/rows.jsonl:1"].value
        assert all(document.reading or document.refused or document.row for document in found.values())
