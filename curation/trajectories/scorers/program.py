"""A scorer that is a program: a Python file in a sandbox, or a server. Both get subjects and return their scores."""

import json
import math
from collections.abc import Sequence

import httpx
import orjson

from curation.imports.layouts.session import Json
from curation.runs.kinds import ItemFailed
from curation.runs.workers.sandbox import backend
from curation.trajectories.scorers.params import ScoreParams
from curation.web.outbound.addresses import WEBHOOKS
from curation.web.outbound.transport import CheckedTransport
from curation.web.problems import Problem
from sandbox.errors import SandboxFailed, SetupRefused
from sandbox.protocol import HOME, MEBIBYTE, Fixture, Labels, Limits, Setup

SECONDS = 60.0
LIMITS = Limits(memory=512 * MEBIBYTE, output=MEBIBYTE, command_seconds=SECONDS)
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
    """Return a score for each subject. Raises `ItemFailed`."""
    own = [] if params.subject == "trajectory" else list(subjects)
    given: Json = {"subject": params.subject, "subjects": own or [None], "trajectory": document}
    found = in_sandbox(params.python, given, labels) if params.python else by_server(params.url, given)
    if not isinstance(found, list) or len(found) != len(subjects):
        raise ItemFailed(f"The scorer returned no list of {len(subjects)} scores: {json.dumps(found)[:200]}")
    for value in found:
        if not isinstance(value, int | float) or not math.isfinite(value):
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
    except ValueError:
        raise ItemFailed(f"The scorer ended the program: {done.output.strip()[-1000:]}") from None


def by_server(url: str, given: Json) -> object:
    try:
        with httpx.Client(transport=CheckedTransport(WEBHOOKS), timeout=SECONDS) as client:
            answer = client.post(url, content=orjson.dumps(given), headers={"Content-Type": "application/json"})
    except Problem as refused:
        raise ItemFailed(refused.detail) from None
    except httpx.HTTPError as error:
        raise ItemFailed(f"{url} does not answer: {str(error) or type(error).__name__}") from None
    if answer.status_code != 200:
        raise ItemFailed(f"{url} answered {answer.status_code}: {answer.text[:300]}")
    try:
        found = answer.json()
    except ValueError:
        raise ItemFailed(f"{url} answered no JSON: {answer.text[:300]}") from None
    return found.get("scores") if isinstance(found, dict) else found
