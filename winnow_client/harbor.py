"""Send the trials of Harbor's jobs to a project: those of a folder, or each as it ends.

`harbor run … --plugin winnow --plugin-kwarg project=demo` sends them while the job runs. Harbor calls the plugin in its
own process, so a site that does not answer stops no trial: what could not be sent is sent with the next one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import zipfile
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from winnow_client.errors import WinnowError
from winnow_client.project import Project
from winnow_client.records import Run
from winnow_client.site import Winnow

logger = logging.getLogger(__name__)

RESULT = "result.json"
# A folder of jobs, a job, or one trial.
_PLACES = (RESULT, f"*/{RESULT}", f"*/*/{RESULT}")
# What the tasks left, which is no part of a trajectory.
_ARTIFACTS = "artifacts"
# How often what is left is sent at a job's end.
_LAST_TRIES = 3


def finished_trials(folder: Path) -> list[Path]:
    """Return the folders of the trials that have ended: in a folder of jobs, in a job, or the one that is a trial."""
    found = {path.parent for place in _PLACES for path in folder.glob(place) if is_finished(path.parent)}
    # What an agent has left inside a trial is none.
    return sorted(trial for trial in found if found.isdisjoint(trial.parents))


def is_finished(trial: Path) -> bool:
    try:
        result = json.loads((trial / RESULT).read_bytes())
    except (FileNotFoundError, ValueError):  # Harbor may be writing it
        return False
    return isinstance(result, dict) and "trial_name" in result and bool(result.get("finished_at"))


def push(project: Project, trials: Sequence[Path]) -> Run:
    """Upload trials of one job, and return the run that imports them. Known trials are not imported again."""
    job = trials[0].resolve().parent.name
    with TemporaryDirectory() as folder:
        packed = Path(folder, f"{job}.zip")
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for trial in trials:
                for path in sorted(trial.rglob("*")):
                    inside = path.relative_to(trial)
                    if path.is_file() and not path.is_symlink() and inside.parts[0] != _ARTIFACTS:
                        archive.write(path, Path(job, trial.name, inside))
        return project.import_file(packed, kind="trajectories")


class JobPlugin:
    """Harbor's plugin `winnow`. Without `url` and `token`, `WINNOW_URL` and `WINNOW_TOKEN` of the environment are used.

    Trials that end within `every` seconds are sent together. A token or project that the site refuses stops the job
    before it begins.
    """

    def __init__(self, project: str, url: str = "", token: str = "", every: float = 10.0) -> None:
        self._slug, self._every = project, float(every)
        self._site = Winnow(url, token, attempts=2, max_wait=5.0)
        self._left: dict[Path, None] = {}
        self._sending: asyncio.Task[None] | None = None
        self._over = asyncio.Event()

    async def on_job_start(self, job: Any) -> None:
        try:
            self._project = await asyncio.to_thread(self._site.project, self._slug)
        except WinnowError:
            self._site.close()
            raise
        job.on_trial_ended(self._trial_ended)

    async def _trial_ended(self, event: Any) -> None:
        self._left[Path(event.config.trials_dir, event.config.trial_name)] = None
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send_later())

    async def on_job_end(self, job_result: Any) -> None:
        self._over.set()
        if self._sending is not None:
            await self._sending
        for tries in range(_LAST_TRIES):
            await asyncio.sleep(self._every if tries and self._left else 0)
            await self._send()
        if self._left:
            job = next(iter(self._left)).parent
            logger.warning("%s trials were not sent to Winnow: run `winnow remote push %s`.", len(self._left), job)
        self._site.close()

    async def _send_later(self) -> None:
        while self._left and not self._over.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), self._every)
            await self._send()

    async def _send(self) -> None:
        # A trial that Harbor runs again has lost its folder.
        trials = [trial for trial in self._left if is_finished(trial)]
        self._left = {}
        if not trials:
            return
        try:
            run = await asyncio.to_thread(push, self._project, trials)
            logger.info("%s trials were sent to Winnow, run %s.", len(trials), run.id)
        except (WinnowError, OSError) as error:
            self._left = {**dict.fromkeys(trials), **self._left}
            logger.warning("Winnow: %s. The trials are sent with the next one.", error)
