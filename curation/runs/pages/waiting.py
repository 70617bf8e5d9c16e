"""Why a run does not move, for its page, REST and the command line: endpoints that are down, workers, limits."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

from django.db.models import Count, Min
from django.utils import timezone
from pydantic import Field

from curation.llm.models import Endpoint, EndpointPace
from curation.runs.engine.dispatch import NO_BROKER
from curation.runs.kinds import Stage, stage_of
from curation.runs.models import LIVE, OPEN, Call, CallStatus, Item, ItemState, Run, RunEvent, ServerOutage
from curation.runs.workers.presence import workers_alive
from curation.web.schemas import out
from curation.web.text.figures import counted, duration

# A run that moves ends an item within this time, or a person wants to know why not.
QUIET = timedelta(seconds=20)
RECENT_CALLS = 50
ENDED_ITEMS = (ItemState.DONE, ItemState.FAILED, ItemState.SKIPPED)


@out
class WaitingOut:
    """One thing that a run waits for."""

    reason: str = Field(
        examples=["endpoint_down"],
        description="endpoint_down, server_down, no_answer, rate_limit, no_worker, workers_busy, sandbox_slots or "
        "no_broker",
    )
    message: str = Field(examples=["judge-a is down: judge.example:8000 refused the connection."])
    since: datetime = Field()
    endpoint: str | None = Field(default=None, examples=["judge-a"], description="The model endpoint's name.")
    host: str | None = Field(default=None, examples=["judge.example:8000"])
    items: int | None = Field(default=None, examples=[20], description="Items that wait, or calls without an answer.")
    next_try_at: datetime | None = None
    gives_up_at: datetime | None = Field(
        default=None, description="When the first item fails, unless the endpoint answers before."
    )


def waits_of(run: Run) -> list[WaitingOut]:
    """Return the reasons why a live run waits. An outage is reported at once, all else when nothing has moved for a
    while."""
    if run.state not in LIVE:
        return []
    found = [*_outages(run), *_server_outage(run)]
    if _moves(run) or (stage := stage_of(run)) is None:
        return found
    items = Item.objects.filter(run=run, stage=run.stage).order_by()
    if items.filter(state=ItemState.CLAIMED).exists():
        return found + (list(_unanswered(run)) or list(_rate_limits(run)))
    pending = items.filter(state=ItemState.PENDING).count()
    return [*found, _worker(run, stage, pending)] if pending else found


def _moves(run: Run) -> bool:
    since = timezone.now() - QUIET
    if run.created_at > since or RunEvent.objects.filter(run=run, created_at__gt=since).exists():
        return True
    return Item.objects.filter(run=run, stage=run.stage, state__in=ENDED_ITEMS, finished_at__gt=since).exists()


def _outages(run: Run) -> Iterator[WaitingOut]:
    held = Item.objects.filter(run=run, waiting_since__isnull=False, state__in=OPEN).order_by()
    groups = {
        endpoint_id: (number, first)
        for endpoint_id, number, first in held.values_list("waits_for").annotate(n=Count("id"), at=Min("waiting_since"))
    }
    paces = EndpointPace.objects.down().filter(pk__in=groups).select_related("endpoint")
    minutes = run.settings.runs.wait_minutes if groups else 0.0
    for pace in paces.order_by("endpoint__name"):
        number, first = groups[pace.pk]
        host = host_of(pace.endpoint)
        place = "" if host in pace.down_reason else f" ({host})"
        wait = f"{counted(number, 'item')} {'waits' if number == 1 else 'wait'}"
        yield WaitingOut(
            "endpoint_down",
            f"{pace.endpoint.name}{place} is down: {pace.down_reason}. {wait} for it, for at most {minutes:g} min.",
            pace.down_at,
            endpoint=pace.endpoint.name,
            host=host,
            items=number,
            next_try_at=pace.next_try_at,
            gives_up_at=first + timedelta(minutes=minutes),
        )


def _server_outage(run: Run) -> Iterator[WaitingOut]:
    held = Item.objects.filter(run=run, waits_for=None, waiting_since__isnull=False, state__in=OPEN).order_by()
    found = held.aggregate(n=Count("id"), first=Min("waiting_since"))
    outage = ServerOutage.objects.filter(run=run).first() if found["n"] else None
    if outage is None:
        return
    minutes = run.settings.runs.wait_minutes
    wait = f"{counted(found['n'], 'item')} {'waits' if found['n'] == 1 else 'wait'}"
    yield WaitingOut(
        "server_down",
        f"{outage.server} is down: {outage.reason}. {wait} for it, for at most {minutes:g} min.",
        outage.since,
        host=urlsplit(outage.server).netloc,
        items=found["n"],
        next_try_at=max(outage.probe_at, timezone.now()),
        gives_up_at=found["first"] + timedelta(minutes=minutes),
    )


def _unanswered(run: Run) -> Iterator[WaitingOut]:
    """Calls that were sent and have no answer for long: the endpoint is slow, or silent."""
    sent = Call.objects.filter(status=CallStatus.SENT, item__run=run, item__state=ItemState.CLAIMED).order_by()
    groups = sent.values_list("endpoint_name", "endpoint_id").annotate(n=Count("id"), first=Min("created_at"))
    for name, endpoint_id, number, first in groups.filter(first__lt=timezone.now() - QUIET).order_by("endpoint_name"):
        endpoint = Endpoint.objects.filter(pk=endpoint_id).first()
        calls = f"{counted(number, 'call')} {'has' if number == 1 else 'have'}"
        seconds = (timezone.now() - first).total_seconds()
        yield WaitingOut(
            "no_answer",
            f"{calls} no answer from {name}, the first for {duration(seconds)}.",
            first,
            endpoint=name,
            host=host_of(endpoint) if endpoint else None,
            items=number,
        )


def _rate_limits(run: Run) -> Iterator[WaitingOut]:
    """Endpoints of the run's newest calls that let no further call through now."""
    recent = list(Call.objects.filter(run=run).order_by("-id").values_list("endpoint_id", "error_kind")[:RECENT_CALLS])
    now = timezone.now()
    paces = EndpointPace.objects.filter(pk__in={pk for pk, _ in recent}).select_related("endpoint")
    for pace in paces.order_by("endpoint__name"):
        limits = ((pace.endpoint.rpm, pace.requests_free_at), (pace.endpoint.tpm, pace.tokens_free_at))
        free_at = max([pace.cooldown_until, *(at for limit, at in limits if limit)])
        is_refused = [kind for pk, kind in recent if pk == pace.pk][0] == "rate_limited"
        if _moment(free_at) <= now and not is_refused:
            continue
        why = "it answers 429, too many requests" if is_refused else "its limits per minute are used up"
        yield WaitingOut(
            "rate_limit",
            f"{pace.endpoint.name} lets no call through now: {why}.",
            _quiet_since(run),
            endpoint=pace.endpoint.name,
            host=host_of(pace.endpoint),
            next_try_at=max(_moment(free_at), now),
        )


def _worker(run: Run, stage: Stage, pending: int) -> WaitingOut:
    since = _quiet_since(run)
    newest = RunEvent.objects.newest(run).first()
    if newest and newest.message == NO_BROKER:
        return WaitingOut("no_broker", NO_BROKER, since, items=pending)
    workers = [worker for worker in workers_alive() if stage.queue in worker.queues.split(",")]
    if not workers:
        message = f"No worker of the queue {stage.queue} is running. Start one; the run then goes on by itself."
        return WaitingOut("no_worker", message, since, items=pending)
    slots = sum(worker.slots for worker in workers)
    if stage.queue in ("rollout", "sandbox"):
        message = f"{_all(slots, 'sandbox slot')} in use by other runs."
        return WaitingOut("sandbox_slots", message, since, items=pending)
    message = f"{_all(slots, 'slot')} of the queue {stage.queue} busy with other runs."
    return WaitingOut("workers_busy", message, since, items=pending)


def _all(slots: int, noun: str) -> str:
    return f"The only {noun} is" if slots == 1 else f"All {counted(slots, noun)} are"


def _quiet_since(run: Run) -> datetime:
    """Return when the run last launched, logged or called something."""
    event = RunEvent.objects.newest(run).values_list("created_at", flat=True).first()
    call = Call.objects.filter(run=run).order_by("-id").values_list("created_at", flat=True).first()
    return max(at for at in (run.created_at, run.started_at, event, call) if at)


def host_of(endpoint: Endpoint) -> str:
    """Return the host and port that the endpoint is called at, or its provider's name."""
    return urlsplit(endpoint.api_base).netloc or endpoint.model.partition("/")[0]


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
