"""A field that no layout knows is kept, or the account names it, also inside of objects."""

import copy
from typing import Any

import orjson
import pytest

from curation.imports.layouts.folder import DocumentFolder
from tests.imports.layouts.golden import GOLDEN, packed

LOG, ROLLOUT = "claude/5e551000-0000-4000-8000-000000000001.jsonl", "codex/rollout-2026-01-01T00-00-00-x.jsonl"


def accounts(folder: DocumentFolder) -> set[tuple[str, str]]:
    readings = [document.reading for _, document in folder.documents() if document.reading]
    return {(entry["field"], entry["becomes"]) for reading in readings for entry in reading.account.entries()}


@pytest.mark.parametrize(
    ("folder", "file", "path", "field"),
    [
        ("agent_logs", LOG, [("type", "user"), "message"], "user.message.new"),
        ("agent_logs", LOG, [("type", "assistant"), "message"], "assistant.message.new"),
        ("agent_logs", ROLLOUT, [("type", "response_item")], "response_item.new"),
        ("agent_logs", ROLLOUT, [("type", "turn_context"), "payload"], "turn_context.new"),
        (
            "chatgpt",
            "conversations.json",
            [0, "mapping", "u1", "message", "metadata"],
            "mapping[].message.metadata.new",
        ),
        ("chatgpt", "conversations.json", [0, "mapping", "u1", "message", "author"], "mapping[].message.author.new"),
        ("harbor", "first/count-lines__solved1/result.json", ["verifier_result"], "result.verifier_result.new"),
        ("harbor", "first/count-lines__solved1/result.json", ["agent_result"], "result.agent_result.new"),
        ("harbor", "first/count-lines__timeout/result.json", ["exception_info"], "result.exception_info.new"),
        ("inspect", "log.json", ["eval"], "eval.new"),
        ("inspect", "log.json", ["samples", 0, "output"], "samples[].output.new"),
        ("inspect", "log.json", ["samples", 0, "scores", "match"], "samples[].scores.match.new"),
        ("mlflow", "trace.json", ["info", "assessments", 0], "info.assessments[].new"),
    ],
)
def test_a_new_field_inside_of_an_object_is_told(folder: str, file: str, path: list[Any], field: str) -> None:
    root = GOLDEN / folder
    files = {one.relative_to(root).as_posix(): one.read_bytes() for one in root.rglob("*") if one.is_file()}
    is_log = file.endswith(".jsonl")
    value: Any = [orjson.loads(line) for line in files[file].splitlines()] if is_log else orjson.loads(files[file])
    changed = copy.deepcopy(value)
    place = changed
    for step in path:
        place = next(one for one in place if one.get(step[0]) == step[1]) if isinstance(step, tuple) else place[step]
    place["new"] = "that nobody knows"
    files[file] = b"\n".join(map(orjson.dumps, changed)) if is_log else orjson.dumps(changed)
    assert (field, "ignored") in accounts(packed(files))
