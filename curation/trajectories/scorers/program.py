"""A scorer that is a program: a Python file in a sandbox, or a server. Both get subjects and return their scores."""

import asyncio
import json
import sys
from collections.abc import Sequence

import httpx
import orjson

from curation.imports.layouts.session import Json
from curation.runs.kinds import ItemFailed, ServerPaused
from curation.runs.workers.sandbox import backend
from curation.trajectories.scorers.params import ScoreParams
from curation.web.outbound.addresses import WEBHOOKS
from curation.web.outbound.transport import AsyncCheckedTransport
from curation.web.problems import Problem
from sandbox.errors import SandboxFailed, SetupRefused
from sandbox.protocol import HOME, MEBIBYTE, Fixture, Labels, SessionLimits, Setup

SECONDS, MOST_BYTES = 60.0, MEBIBYTE
# The server is there and asks to wait, or a gateway before it finds none.
BUSY = (429, 502, 503, 504)
LIMITS = SessionLimits(memory=512 * MEBIBYTE, output=MEBIBYTE, command_seconds=SECONDS)
_GIVEN, _FILE = "/srv/given.json", f"{HOME}/scorer.py"
_RUN = f"""command -v python3 > /dev/null || exit 127
python3 -c '
import json, sys
sys.path.insert(0, "{HOME}")
from scorer import score
given = json.load(open("{_GIVEN}"))
session = given["trajectory"]
found = [score(session) if given["subject"] == "trajectory" else score(one, session) for one in given["subjects"]]
print("\\n" + json.dumps(found))
'"""
NO_PYTHON = "The sandbox of this worker has no python3. Its operator builds one: sandbox build --base with Python."


def program_scores(params: ScoreParams, subjects: Sequence[object], document: Json, labels: Labels) -> list[float]:
    """Return a score for each subject. Raises `ItemFailed`, and `ServerPaused` if the server takes no connection."""
    own = [] if params.subject == "trajectory" else list(subjects)
    given: Json = {"subject": params.subject, "subjects": own or [None], "trajectory": document}
    found = in_sandbox(params.python, given, labels) if params.python else by_server(params.url, given)
    if not isinstance(found, list) or len(found) != len(subjects):
        raise ItemFailed(f"The scorer returned no list of {len(subjects)} scores: {json.dumps(found)[:200]}")
    for value in found:
        if not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
            raise ItemFailed(f"The scorer returned {json.dumps(value)[:100]}, which is no number.")
    return [float(value) for value in found]


def in_sandbox(python: str, given: Json, labels: Labels) -> object:
    fixtures = [Fixture(_FILE, python.encode()), Fixture(_GIVEN, orjson.dumps(given))]
    try:
        with backend().session(Setup(fixtures=fixtures, limits=LIMITS, labels=labels)) as session:
            done = session.exec(_RUN)
    except (SandboxFailed, SetupRefused) as failed:
        raise ItemFailed(f"The sandbox failed: {failed}") from failed
    if done.exit_code == 127:
        raise ItemFailed(NO_PYTHON)
    if done.timed_out or done.exit_code:
        ended = f"took longer than {SECONDS:g} s" if done.timed_out else f"ended with {done.exit_code}"
        raise ItemFailed(f"The scorer {ended}: {done.output.strip()[-1000:]}")
    try:
        return json.loads(done.output.rstrip().rpartition("\n")[2])
    except (ValueError, RecursionError):
        raise ItemFailed(f"The scorer ended the program: {done.output.strip()[-1000:]}") from None


def by_server(url: str, given: Json) -> object:
    try:
        status, body = asyncio.run(_posted(url, orjson.dumps(given)))
    except Problem as refused:
        raise ItemFailed(refused.detail) from None
    except TimeoutError:
        raise ItemFailed(f"{url} did not answer within {SECONDS:g} s.") from None
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise ServerPaused(url, str(error) or "it takes no connection") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ItemFailed(f"{url} does not answer: {str(error) or type(error).__name__}") from None
    shown = body[:300].decode(errors="replace")
    if status in BUSY:
        raise ServerPaused(url, f"it answered {status}: {shown}")
    if status != 200:
        raise ItemFailed(f"{url} answered {status}: {shown}")
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise ItemFailed(f"{url} answered no JSON: {shown}") from None
    return found.get("scores") if isinstance(found, dict) else found


async def _posted(url: str, given: bytes) -> tuple[int, bytes]:
    """Return the status and the body. Raises `ItemFailed` for one that does not end within `MOST_BYTES`."""
    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
    async with (
        asyncio.timeout(SECONDS),
        httpx.AsyncClient(transport=AsyncCheckedTransport(WEBHOOKS), timeout=SECONDS) as client,
        client.stream("POST", url, content=given, headers=headers) as answer,
    ):
        body = b""
        # Raw bytes: a compressed answer is not unpacked.
        async for chunk in answer.aiter_raw(64 * 1024):
            body += chunk
            if len(body) > MOST_BYTES:
                raise ItemFailed(f"{url} answered more than {MOST_BYTES // MEBIBYTE} MB.")
        return answer.status_code, body
