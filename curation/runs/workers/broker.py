"""Whether the broker answers: checked by `/ready` and the system page, and known to pages without waiting for it."""

import os
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

from celery import current_app
from django.conf import settings
from kombu.exceptions import KombuError, OperationalError
from redis import Redis
from redis.exceptions import RedisError

from curation.runs.engine.dispatch import is_paused

SECONDS = 2
FRESH_SECONDS = 5.0


def check_broker() -> tuple[bool, str]:
    """Return whether the broker works, and a detail without secrets. Connects without sending anything. The embedded
    broker is a folder, which must be writable."""
    scheme = urlsplit(settings.CELERY_BROKER_URL).scheme
    if scheme == "filesystem":
        folder = Path(str(settings.CELERY_BROKER_TRANSPORT_OPTIONS["data_folder_out"]))
        ok = folder.is_dir() and os.access(folder, os.W_OK)
        return ok, "embedded" if ok else "embedded: its folder cannot be written"
    try:
        if scheme.startswith("redis"):  # kombu would wait for ever where a connection is accepted and never answered
            Redis.from_url(settings.CELERY_BROKER_URL, socket_connect_timeout=SECONDS, socket_timeout=SECONDS).ping()
        else:
            with current_app.connection_for_write(connect_timeout=SECONDS) as found:
                found.ensure_connection(max_retries=1, timeout=SECONDS, interval_start=0)
    except (KombuError, OperationalError, RedisError, OSError) as error:
        # The text of the error may contain the URL and with it a password.
        return False, f"{scheme}: {type(error).__name__}, no connection within {SECONDS} s"
    return True, scheme


class _Known:
    """The last state; a thread finds out the next one, because a silent broker takes seconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._due = 0.0
        self.answers = True

    def refresh(self) -> None:
        with self._lock:
            if time.monotonic() < self._due:
                return
            self._due = time.monotonic() + FRESH_SECONDS
        threading.Thread(target=self._check, name="broker-check", daemon=True).start()

    def _check(self) -> None:
        self.answers, _ = check_broker()


_known = _Known()


def broker_answers() -> bool:
    """Return whether the broker answered some seconds ago, without waiting for it."""
    _known.refresh()
    return _known.answers and not is_paused()
