"""Drive: what a worker does when the bell rings for a run."""

import os
import socket
import uuid

from curation.runs.advance import advance
from curation.runs.bell import ring
from curation.runs.drive_llm import drive_llm
from curation.runs.drive_sync import drive_sync
from curation.runs.kinds import stage_of
from curation.runs.models import LIVE, Item, ItemState, Run


def drive(run_id: int) -> None:
    """Works on one shard of the run's stage, then moves the run on or rings for what is left."""
    run = Run.objects.select_related("project").filter(pk=run_id, state__in=LIVE).first()
    stage = stage_of(run) if run else None
    if run is None or stage is None:
        return
    owner = f"{socket.gethostname()[:40]}:{os.getpid()}:{uuid.uuid4().hex[:12]}"
    if stage.queue == "llm":
        drive_llm(run, stage, owner)
    else:
        drive_sync(run, stage, owner)
    advance(run_id)
    if Item.objects.filter(run_id=run_id, stage=run.stage, state=ItemState.PENDING).exists():
        ring(run_id)
