"""Builds the demo project by launching runs."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from django.contrib.auth.models import User
from django.core.files.base import ContentFile

from curation import scenarios
from curation.imports.sources.stored import store_upload
from curation.llm.models import Endpoint
from curation.projects.access import Access
from curation.projects.models import SCOPES_OF_ROLE, Project, Role
from curation.review.decisions.decide import decide
from curation.review.models import Action
from curation.runs.engine.reap import reap_all
from curation.runs.engine.worker import drive
from curation.runs.launch import launch
from curation.runs.models import LIVE, Run, RunState

FILES = Path(__file__).parent / "files"
SHIPPED = Path(scenarios.__file__).parent / "shipped"
Say = Callable[[str], None]
# The progress of a long run is said so often.
SILENT_SECONDS = 5.0


def upload_sample(project: Project, name: str) -> str:
    """Store a file of the demo; return its key. `scenarios.jsonl` has all scenarios that ship with Winnow."""
    return store_upload(project=project, file=ContentFile(_sample_rows(name)), name=name)


def _sample_rows(name: str) -> bytes:
    if name != "scenarios.jsonl":
        return (FILES / name).read_bytes()
    paths = sorted([*SHIPPED.glob("*.json"), *(FILES / "scenarios").glob("*.json")])
    return b"\n".join(orjson.dumps(orjson.loads(path.read_bytes())) for path in paths)


class DemoFailed(Exception):
    """A run of the demo failed."""


@dataclass(frozen=True, slots=True)
class Builder:
    """`say` prints a line of progress. Without `runs_here` the runs are left to the workers."""

    project: Project
    user: User
    say: Say
    runs_here: bool = True

    @property
    def access(self) -> Access:
        return Access(self.user, self.project, Role.ADMIN, SCOPES_OF_ROLE[Role.ADMIN])

    def add_scripted_models(self, names: Iterable[str], **values: object) -> None:
        """Add the scripted models that are missing, named `scripted-…` after the model `scripted/…`."""
        for name in names:
            model = name.replace("scripted-", "scripted/", 1)
            defaults = {"model": model, "family": "scripted", "max_concurrency": 32, **values}
            Endpoint.objects.get_or_create(project=self.project, name=name, defaults=defaults)

    def import_rows(self, kind: str, name: str) -> Run:
        return self.run("import", kind=kind, upload=upload_sample(self.project, name), name=name)

    def run(self, kind: str, /, **params: Any) -> Run:
        run = launch(project=self.project, kind=kind, params=params, user=self.user)
        self.drive(run)
        return run

    def drive(self, run: Run) -> None:
        """Return when the run has ended. Its work is done here with the worker's own code, or by the workers."""
        started = said = time.monotonic()
        while True:
            if self.runs_here:
                drive(run.pk)
            run.refresh_from_db()
            if run.state not in LIVE:
                break
            if self.runs_here:
                reap_all()
            elif time.monotonic() - said > SILENT_SECONDS:
                said = time.monotonic()
                self.say(f"  {run.kind:<13} {run.items_done:>4} of {run.items_total} items")
            time.sleep(0.1)
        self.say(f"  {run.kind:<13} {run.items_done:>4} items  {time.monotonic() - started:5.1f} s  {run.state}")
        if run.state != RunState.SUCCEEDED:
            raise DemoFailed(f"Run {run.pk} of kind {run.kind} {run.state}: {run.error}")

    def decide(self, sample_ids: Iterable[int], action: Action, *, reason: str = "", seconds: float) -> None:
        """Decide the samples, each a little slower than the one before."""
        for number, sample_id in enumerate(sample_ids):
            access, pace = self.access, seconds + 4 * number
            decide(access=access, sample_id=sample_id, action=action, reason=reason, seconds=pace)
