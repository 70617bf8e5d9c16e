"""The sandbox that this machine's runs use, and whose sandboxes are still somebody's."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from django.conf import settings

from curation.runs.models import Item, ItemState
from curation.web.problems import Problem
from sandbox.agent.shell_environment import ShellEnvironment, Task
from sandbox.choose import choose_backend
from sandbox.errors import SandboxUnavailable
from sandbox.protocol import Backend, Labels, Session, Setup

# To open a session is work for a processor: hundreds that begin at once would only keep each other, and the calls that
# are to leave meanwhile, from getting anywhere.
_openings = threading.Semaphore(os.cpu_count() or 1)


class NoSandbox(Problem):
    """Nothing here can run commands in isolation; `detail` says what to install."""

    status = 409
    title = "No sandbox"
    code = "no_sandbox"


def backend() -> Backend:
    """The backend that `SANDBOX` names, or the one that is there; raises `NoSandbox`."""
    try:
        return choose_backend(settings.SANDBOX, folder=sandbox_folder())
    except SandboxUnavailable as missing:
        raise NoSandbox(str(missing)) from None


def sandbox_folder() -> Path:
    """Where bubblewrap's root lies once it was built, and the name that this Winnow has on an engine."""
    folder: Path = settings.WINNOW_DATA / "sandbox"
    return folder


def shell_environment(task: Task, rooms: Backend, *, command_seconds: float) -> ShellEnvironment:
    """An environment whose session is opened in its turn, in a thread that this process keeps."""

    def session(setup: Setup) -> Session:
        with _openings:
            return rooms.session(setup)

    return ShellEnvironment(task, session, _session_threads(), command_seconds=command_seconds)


@cache
def _session_threads() -> ThreadPoolExecutor:
    """One thread for every session that is open, so that none waits for another's command; they live as the process."""
    return ThreadPoolExecutor(settings.SANDBOX_SESSIONS, thread_name_prefix="session")


def labels_of(item: Item) -> dict[str, str]:
    """What a sandbox is labelled with, so that `reap_sandboxes` knows whose it is."""
    return {"run": str(item.run_id), "item": str(item.pk), "lease": item.lease_owner}


def reap_sandboxes() -> int:
    """Removes the sandboxes of dead workers; of how many. Nothing where there is no backend."""
    try:
        return backend().reap(_is_alive)
    except NoSandbox:
        return 0


def _is_alive(labels: Labels) -> bool:
    item, lease = labels.get("item", ""), labels.get("lease", "")
    return item.isdecimal() and Item.objects.filter(pk=item, state=ItemState.CLAIMED, lease_owner=lease).exists()
