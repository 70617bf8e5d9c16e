"""OpenAI's published types accept every message, and the script beside the files uploads them and starts a job."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from pydantic import TypeAdapter

from curation.projects.models import Project
from tests.exports.exporting import content, export_of, make_approved, reasons, rows
from tests.factories import HISTORY, make_project, make_user, set_history
from tests.sampled import one_of

pytestmark = pytest.mark.django_db(transaction=True)
CALL = {"function": {"name": "bash", "arguments": {"command": "ls"}}}
TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]
CALLING = [
    {"role": "developer", "content": "You solve tasks."},
    *HISTORY[1:],
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "name": "bash", "content": "billing"},
]


def filled(*histories: list[Any]) -> Project:
    project, user = make_project(), make_user()
    for history in histories:
        set_history(make_approved(project, by=user).duel.prompt, history, TOOLS)
    return project


def test_every_message_has_a_published_type() -> None:
    from openai.types import chat  # noqa: PLC0415 - most processes of tests need none

    messages = TypeAdapter(list[chat.ChatCompletionMessageParam])
    answer_type = TypeAdapter(chat.ChatCompletionAssistantMessageParam)
    tools = TypeAdapter(list[chat.ChatCompletionToolParam])
    export = export_of(filled(HISTORY, CALLING), {"trainer": "openai"})
    assert export.counts["rows"] == {"openai-sft": {"train": 2}, "openai-preference": {"train": 2}}
    for row in rows(export, "openai-sft.train.jsonl"):
        assert len(list(messages.validate_python(row["messages"]))) == len(row["messages"])
        tools.validate_python(row["tools"])
        weights = [message["weight"] for message in row["messages"] if message["role"] == "assistant"]
        assert weights[-1] == 1 and not any(weights[:-1])
    for row in rows(export, "openai-preference.train.jsonl"):
        messages.validate_python(row["input"]["messages"])
        tools.validate_python(row["input"]["tools"])
        assert row["input"]["parallel_tool_calls"] is True
        for side in ("preferred_output", "non_preferred_output"):
            (answer,) = row[side]
            answer_type.validate_python(answer)
    called, answered = rows(export, "openai-sft.train.jsonl")[1]["messages"][-3:-1]
    assert (called["tool_calls"][0]["id"], answered["tool_call_id"]) == ("call_1", "call_1")


@pytest.mark.parametrize(
    ("history", "reason"),
    [
        ([*HISTORY, {"role": "tool", "content": "billing"}], "tool_without_call"),
        ([*HISTORY, {"role": "assistant", "content": "", "tool_calls": [CALL]}], "call_without_result"),
    ],
)
def test_a_history_that_the_api_would_refuse_gives_no_row(history: list[Any], reason: str) -> None:
    export = export_of(filled(history), {"formats": ["openai-sft", "openai-preference", "dpo"]})
    assert export.counts["rows"] == {"openai-sft": {"train": 0}, "openai-preference": {"train": 0}, "dpo": {"train": 1}}
    assert list(reasons(export).values()) == [reason]


class _Api(ThreadingHTTPServer):
    """Files and jobs of the fine-tuning API; `asked` keeps the bodies by path."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[tuple[str, bytes]] = []


class _Handler(BaseHTTPRequestHandler):
    server: _Api

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append((self.path, body))
        answer = json.dumps({"id": f"id-{len(self.server.asked)}", "status": "queued"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


@pytest.fixture
def api() -> Iterator[_Api]:
    server = _Api()
    Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("gzipped", one_of(2, [False, True]))
def test_the_script_uploads_the_file_and_starts_a_job(tmp_path: Path, api: _Api, gzipped: bool) -> None:
    export = export_of(filled(HISTORY), {"trainer": "openai", "gzip": gzipped})
    for file in export.files.all():
        (tmp_path / file.name).write_bytes(content(export, file.name))
    own = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"http://127.0.0.1:{api.server_port}/v1", "NO_PROXY": "127.0.0.1"}
    command = [sys.executable, str(tmp_path / "openai_finetune.py"), "openai-preference"]
    done = subprocess.run(command, env=os.environ | own, capture_output=True, text=True, check=True)
    assert done.stdout == "job id-2: queued\n"
    (uploaded, form), (created, job) = api.asked
    assert (uploaded, created) == ("/v1/files", "/v1/fine_tuning/jobs")
    assert b'"preferred_output"' in form and b"fine-tune" in form
    assert json.loads(job)["training_file"] == "id-1" and json.loads(job)["method"] == {"type": "dpo"}
