"""Real agent turns in both source layouts, with their pull-request records, where the shared data folder is there."""

import json
from dataclasses import dataclass
from typing import Any

from judging.leaks.record import PullRequestRecord
from tests.parts import shared_data


@dataclass(frozen=True, slots=True)
class Turn:
    """One real answer, the messages before it, and the record of its pull request."""

    answer: str
    history: tuple[str, ...]
    record: PullRequestRecord


def read_turns() -> list[Turn]:
    """Every assistant turn that has a history. Without the shared data the test is skipped, and fails in CI."""
    records = {}
    for row in _rows("pr_records.jsonl"):
        fields = {name: row[name] for name in ("instance_id", "title", "issue", "description", "patch")}
        records[row["instance_id"]] = PullRequestRecord(**fields, files=tuple(row["files"]))
    turns = []
    for name, column, speaker in (
        ("swe_agent_nebius.jsonl", "trajectory", "ai"),
        ("mini_coder.jsonl", "messages", "assistant"),
    ):
        for row in _rows(name):
            texts = [m.get("content") or m.get("text") or m.get("system_prompt") or "" for m in row[column]]
            turns += [
                Turn(texts[i], tuple(texts[:i]), records[row["instance_id"]])
                for i, message in enumerate(row[column])
                if i > 1 and message["role"] == speaker
            ]
    return turns


def _rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in shared_data("turns", name).read_text("utf-8").splitlines()]
