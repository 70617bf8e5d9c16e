"""The sandbox backend of this machine, and the removal of sandboxes whose worker died."""

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TypeVar

from django.conf import settings

from curation.runs.models import Item, ItemState
from curation.web.ids import id_number
from curation.web.problems import Problem
from sandbox.agent.shell_environment import ShellEnvironment, ShellTask
from sandbox.choose import choose_backend
from sandbox.errors import SandboxFailed, SandboxUnavailable
from sandbox.protocol import Labels, SandboxBackend, SandboxSession, Setup

T = TypeVar("T")
# Opening a session takes processor time: hundreds at once would slow down each other and the model calls.
_openings = threading.Semaphore(os.cpu_count() or 1)


class NoSandbox(Problem):
    """No backend works on this machine; `detail` names the packages to install."""

    status = 409
    title = "No sandbox"
    code = "no_sandbox"


def backend() -> SandboxBackend:
    """Return the backend that `SANDBOX` names, or the first that works; raise `NoSandbox`."""
    try:
        return choose_backend(settings.SANDBOX, folder=sandbox_folder())
    except SandboxUnavailable as missing:
        raise NoSandbox(str(missing)) from None


def sandbox_folder() -> Path:
    """Return the folder of bubblewrap's root; its path also identifies this installation to Docker."""
    folder: Path = settings.WINNOW_DATA / "sandbox"
    return folder


def shell_environment(task: ShellTask, rooms: SandboxBackend, *, command_seconds: float) -> ShellEnvironment:
    """Return an environment for the task; its session is opened in a thread of this process, a few at a time."""

    def session(setup: Setup) -> SandboxSession:
        with _openings:
            return rooms.session(setup)

    return ShellEnvironment(task, session, _session_threads(), command_seconds=command_seconds)


async def in_session_thread(work: Callable[[Callable[[], None]], T]) -> T:
    """Return `work(checkpoint)`, called in a thread that sessions may be opened in.

    `checkpoint()` raises `SandboxFailed` once nobody waits for the result any more.
    """
    stopped = threading.Event()

    def checkpoint() -> None:
        if stopped.is_set():
            raise SandboxFailed("its item was stopped")

    try:
        return await asyncio.get_running_loop().run_in_executor(_session_threads(), work, checkpoint)
    finally:
        stopped.set()


@cache
def _session_threads() -> ThreadPoolExecutor:
    """Return the pool with one thread per session; a bubblewrap session ends with the thread that opened it."""
    return ThreadPoolExecutor(settings.SANDBOX_SESSIONS, thread_name_prefix="session")


def labels_of(item: Item) -> dict[str, str]:
    """Return the labels by which `reap_sandboxes` finds the item of a sandbox."""
    return {"run": str(item.run_id), "item": str(item.pk), "lease": item.lease_owner}


def reap_sandboxes() -> int:
    """Remove the sandboxes of dead workers; return their number."""
    try:
        return backend().reap(_is_alive)
    except NoSandbox:
        return 0


def labels_of_server() -> dict[str, str]:
    """Return the labels of the sandboxes that this process serves to others; they end with it."""
    return {"server": str(os.getpid())}


def _is_alive(labels: Labels) -> bool:
    if "server" in labels:
        return Path("/proc", labels["server"]).exists()
    item, lease = id_number(labels.get("item", "")), labels.get("lease", "")
    return Item.objects.filter(pk=item or 0, state=ItemState.CLAIMED, lease_owner=lease).exists()
