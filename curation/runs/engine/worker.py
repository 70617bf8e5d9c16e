"""Drive: what a worker does with a message that a run has work."""

import os
import socket
import time
import uuid

from curation.runs.engine.advance import advance, fail_run_on_error
from curation.runs.engine.dispatch import is_outdated, requeue
from curation.runs.engine.llm_stage import drive_llm
from curation.runs.engine.reap import ReaperThread
from curation.runs.engine.sync_stage import drive_sync
from curation.runs.kinds import LlmStage, stage_of
from curation.runs.models import LIVE, Item, ItemState, Run
from curation.web.telemetry import Span

CROWDED_PAUSE = 1.0


def drive(run_id: int, dispatched: str = "") -> None:
    """Work on one shard of the run's stage, then advance the run, or requeue the message if work is left.

    `dispatched` is the time in the message; an outdated message does nothing.
    """
    run = Run.objects.select_related("project").filter(pk=run_id, state__in=LIVE).first()
    if run is None or is_outdated(run, dispatched):
        return
    with ReaperThread(), fail_run_on_error(run_id):
        stage = stage_of(run)
        if stage is None:
            return
        owner = f"{socket.gethostname()[:40]}:{os.getpid()}:{uuid.uuid4().hex[:12]}"
        with Span("stage", kind=run.kind, stage=run.stage):
            if isinstance(stage, LlmStage):
                took = drive_llm(run, stage, owner)
            else:
                drive_sync(run, stage, owner)
                took = True
    advance(run_id)
    left = Item.objects.filter(run_id=run_id, stage=run.stage, state=ItemState.PENDING)
    if dispatched and left.exists():
        if not took:
            time.sleep(CROWDED_PAUSE)  # other workers have as many of its items as the kind allows
        requeue(run_id, dispatched)
