"""Cancel, resume, retry failed, clone. Each is a conditional update, so that two clicks do it once."""

from decimal import Decimal

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, Max
from django.utils import timezone

from curation.projects.models import AuditEntry
from curation.runs.calls.record import lose_calls
from curation.runs.engine.dispatch import dispatch
from curation.runs.kinds import LastingStage, Stage, kind_of, stages_of
from curation.runs.launch import check_budget, launch
from curation.runs.models import ENDED, LIVE, OPEN, Call, Item, ItemState, Run, RunEvent, RunState, ServerOutage
from curation.web.problems import Conflict, FieldError
from curation.web.text.figures import counted, price

# Words of a refusal for the state of a run, and for the requested action.
_STANDS = {
    RunState.QUEUED: "is queued",
    RunState.RUNNING: "is running",
    RunState.SUCCEEDED: "succeeded",
    RunState.FAILED: "failed",
    RunState.CANCELLED: "was cancelled",
}
_VERBS = {"cancel": "cancelled", "resume": "resumed", "retry-failed": "retried"}


def cancel(*, run: Run, user: User | None) -> Run:
    """Stop the run; workers release its items within seconds. Raise `Conflict` if it has ended."""
    _move(run, LIVE, user, "cancel", "Cancelled.", state=RunState.CANCELLED, finished_at=timezone.now())
    return run


def resume(*, run: Run, user: User | None, budget: Decimal | None = None) -> Run:
    """Continue a cancelled or failed run, with a new budget if one is given."""
    if budget is not None:
        check_budget(budget, kind_of(run.kind).estimate(run.project, kind_of(run.kind).read(run)))
    allowed = budget if budget is not None else run.budget
    if allowed is not None and allowed <= run.cost:
        spent = f"The run has already spent {price(run.cost)}. Enter a budget above that."
        raise Conflict(spent, code="budget_spent", errors=[FieldError("budget", "must be above the money spent")])
    changes = {"state": RunState.RUNNING, "finished_at": None, "error": "", "budget": allowed}
    with transaction.atomic():
        _move(run, (RunState.CANCELLED, RunState.FAILED), user, "resume", "Resumed.", **changes)
        # They wait from now on, if their endpoint is still down.
        waited = Item.objects.filter(run=run, state__in=OPEN, waiting_since__isnull=False)
        waited.update(state=ItemState.PENDING, waits_for=None, waiting_since=None)
        ServerOutage.objects.filter(run=run).delete()
    return run


def retry_failed(*, run: Run, user: User | None) -> Run:
    """Retry the run's failed items, from the first stage that has any. Raise `Conflict` if there are none."""
    with transaction.atomic():
        Run.objects.hold(run.pk)
        failed = Item.objects.failed(run).order_by()
        with_failures = set(failed.values_list("stage", flat=True).distinct())
        first = next((stage.name for stage in stages_of(run) if stage.name in with_failures), None)
        if first is None:
            raise Conflict("The run has no failed items.", code="nothing_failed")
        # Later stages were planned from the results of this one; they are planned again when it has ended.
        stages = list(stages_of(run))
        _forget_later_stages(run, stages[[stage.name for stage in stages].index(first) + 1 :])
        last_call = Call.objects.filter(run=run).aggregate(last=Max("pk"))["last"]
        count = failed.filter(stage=first).update(
            state=ItemState.PENDING,
            reason="",
            claims=0,
            deaths=0,
            finished_at=None,
            cache_after=last_call or 0,
            waits_for=None,
            waiting_since=None,
        )
        changes = {"state": RunState.RUNNING, "stage": first, "finished_at": None, "error": ""}
        Run.objects.filter(pk=run.pk).update(items_failed=F("items_failed") - count)
        _move(run, (*ENDED, *LIVE), user, "retry-failed", f"Trying {counted(count, 'failed item')} again.", **changes)
    return run


def clone(*, run: Run, user: User | None) -> Run:
    return launch(project=run.project, kind=run.kind, params=run.params, user=user, budget=run.budget, cloned_from=run)


def _forget_later_stages(run: Run, stages: list[Stage]) -> None:
    """Delete the items of later stages, except done items of stages that last: they stay in the run's figures.

    Repeated items find their recorded answers.
    """
    lasting = [stage.name for stage in stages if isinstance(stage, LastingStage)]
    later = Item.objects.filter(run=run, stage__in=[stage.name for stage in stages])
    later = later.exclude(stage__in=lasting, state=ItemState.DONE)
    lose_calls(list(later.filter(state=ItemState.CLAIMED).values_list("pk", flat=True)), "its stage is planned again")
    counts = {state: later.filter(state=state).count() for state in ItemState}
    Run.objects.filter(pk=run.pk).update(
        items_total=F("items_total") - sum(counts.values()),
        items_done=F("items_done") - counts[ItemState.DONE],
        items_failed=F("items_failed") - counts[ItemState.FAILED],
        items_skipped=F("items_skipped") - counts[ItemState.SKIPPED],
    )
    later.delete()


def _move(
    run: Run, states: tuple[RunState, ...], user: User | None, verb: str, message: str, **changes: object
) -> None:
    with transaction.atomic():
        if Run.objects.filter(pk=run.pk, state__in=states).update(**changes) != 1:
            run.refresh_from_db()
            raise Conflict(f"A run that {_STANDS[RunState(run.state)]} cannot be {_VERBS[verb]}.", code="wrong_state")
        RunEvent.objects.create(run=run, message=message)
        AuditEntry.record(actor=user, project=run.project, action=f"run.{verb}", subject=f"{run.kind} {run.pk}")
        run.refresh_from_db()
        if run.state in LIVE:
            transaction.on_commit(lambda: dispatch(run.pk))
