"""Advance: when a stage has no open items the next one begins, and after the last the run ends."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import Error, transaction
from django.db.models import F
from django.utils import timezone

from curation.projects.models import AuditEntry
from curation.runs.engine.dispatch import dispatch
from curation.runs.kinds import Json, MendingStage, Stage, kind_of, stages_of
from curation.runs.models import LIVE, OPEN, Item, ItemState, Run, RunEvent, RunState
from curation.web.failures import DiskFull, failure_of
from curation.web.problems import Problem
from curation.web.text.figures import counted, price
from curation.webhooks.emit import emit
from curation.webhooks.models import WebhookEvent

logger = logging.getLogger(__name__)
BATCH = 1000


def enter_stage(run: Run, stage: Stage) -> int:
    """Create the stage's items and make it the current stage; return their number. Needs a transaction.

    After a retry, items that the run has done already are not planned again.
    """
    total = skipped = 0
    batch: list[Item] = []
    earlier = Item.objects.filter(run=run, stage=stage.name).values_list("key", flat=True)
    done = set(earlier) if run.items_total else set()
    for planned in stage.plan(run):
        if planned.key in done:
            continue
        state = ItemState.SKIPPED if planned.skipped else ItemState.PENDING
        batch.append(
            Item(
                run=run,
                stage=stage.name,
                key=planned.key,
                target_id=planned.target_id,
                data=planned.data,
                state=state,
                reason=planned.skipped,
                finished_at=timezone.now() if planned.skipped else None,
            )
        )
        total += 1
        skipped += bool(planned.skipped)
        if len(batch) >= BATCH:
            Item.objects.bulk_create(batch)
            batch.clear()
    Item.objects.bulk_create(batch)
    Run.objects.filter(pk=run.pk).update(
        stage=stage.name, items_total=F("items_total") + total, items_skipped=F("items_skipped") + skipped
    )
    run.stage = stage.name
    return total


def advance(run_id: int) -> None:
    """Begin the next stage of a live run if the current one has no open items. Any worker may call it at any time.

    The run's row is locked while the next stage is planned, so that only one caller plans it.
    """
    moved = False
    with fail_run_on_error(run_id), transaction.atomic():
        moved = _advance(run_id)
    if moved:
        dispatch(run_id)


@contextmanager
def fail_run_on_error(run_id: int) -> Iterator[None]:
    """End the run, with the reason, on an error that would otherwise repeat for ever.

    A `Problem` is something that a person can fix (its model was deleted, the disk is full), and then resume the run.
    Other database errors are not caught: the reaper tries again.
    """
    try:
        yield
    except Problem as problem:
        _end(run_id, RunState.FAILED, problem.detail)
    except Exception as error:  # error boundary of planning and loading: a bug ends its run, not the worker
        failure = failure_of(error)
        if isinstance(failure, DiskFull):
            _end(run_id, RunState.FAILED, failure.detail)
        elif isinstance(error, Error):
            raise
        else:
            logger.exception("run %s", run_id)
            _end(run_id, RunState.FAILED, f"Internal error: {error!r}")


def _advance(run_id: int) -> bool:
    run = Run.objects.select_for_update(no_key=True).filter(pk=run_id, state__in=LIVE).first()
    if run is None:
        return False
    moved = False
    stages = list(stages_of(run))
    names = [stage.name for stage in stages]
    while not Item.objects.filter(run=run, stage=run.stage, state__in=OPEN).exists():
        position = names.index(run.stage)
        if not isinstance(stages[position], MendingStage) and _stage_is_lost(run):
            reason = Item.objects.filter(run=run, stage=run.stage, state=ItemState.FAILED).values_list("reason")[:1]
            _end(run_id, RunState.FAILED, f"Every item of stage {run.stage} failed, the first: {reason[0][0]}")
            return False
        position += 1
        if position == len(stages):
            _finish(run)
            return False
        total = enter_stage(run, stages[position])
        RunEvent.objects.create(run=run, message=f"Stage {run.stage}: {counted(total, 'item')}.")
        moved = True
    return moved


def _stage_is_lost(run: Run) -> bool:
    ended = Item.objects.filter(run=run, stage=run.stage).order_by()
    return (
        run.items_failed > 0
        and ended.filter(state=ItemState.FAILED).exists()
        and not ended.filter(state__in=[ItemState.DONE, ItemState.SKIPPED]).exists()
    )


def _finish(run: Run) -> None:
    run.refresh_from_db()
    kind = kind_of(run.kind)
    _end(run.pk, RunState.SUCCEEDED, "", result={**run.result, **kind.finish(run, kind.read(run))})


def _end(run_id: int, state: RunState, error: str, **changes: Json) -> None:
    """End the run; a second caller changes nothing."""
    with transaction.atomic():
        live = Run.objects.filter(pk=run_id, state__in=LIVE)
        if live.update(state=state, error=error, finished_at=timezone.now(), **changes) != 1:
            return
        run = Run.objects.select_related("project").get(pk=run_id)
        level = RunEvent.Level.ERROR if state == RunState.FAILED else RunEvent.Level.INFO
        if run.outcome:
            level = RunEvent.Level.WARNING
        how = f" with failures: {run.items_done} done, {run.items_failed} failed" if run.outcome else ""
        message = f"Finished{how or f': {run.items_done:,} done'}."
        RunEvent.objects.create(run=run, level=level, message=error or message)
        AuditEntry.record(actor=None, project=run.project, action=f"run.{state}", subject=f"{run.kind} {run.pk}")
        figures = {"total": run.items_total, "done": run.items_done, "failed": run.items_failed}
        data = {"run": str(run.pk), "kind": run.kind, "state": state, "outcome": run.outcome or None, "error": error}
        emit(run.project, WebhookEvent.RUN_FINISHED, {**data, "items": {**figures, "skipped": run.items_skipped}})


def stop_for_budget(run_id: int, noun: str = "call") -> None:
    """Stop a run whose budget does not pay for one more call or trial; it can be resumed with a higher one."""
    run = Run.objects.get(pk=run_id)
    if run.budget is None:
        return
    why = (
        f"Stopped: the rest of the budget of {price(run.budget)} does not pay for one more {noun} "
        f"({price(run.cost)} is spent). Resume the run with a higher budget."
    )
    live = Run.objects.filter(pk=run_id, state__in=LIVE)
    if live.update(state=RunState.CANCELLED, finished_at=timezone.now(), error=why) == 1:
        RunEvent.objects.create(run=run, level=RunEvent.Level.WARNING, message=why)
