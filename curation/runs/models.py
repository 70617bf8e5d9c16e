"""Runs and items, their events, and the record of every model call."""

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, ClassVar

from django.conf import settings
from django.db import connection, models
from django.urls import reverse
from django.utils import timezone

from curation.llm.models import Endpoint
from curation.projects.models import Blocker, Project, RemovableRow
from curation.projects.removal.erase import models_from_top
from curation.projects.settings.document import ProjectSettings, stored_settings
from curation.web.ids import IdList
from curation.web.text.figures import exact_money


class RunState(models.TextChoices):
    """`queued → running → succeeded | failed | cancelled`; resume and retry lead back to `running`.

    A run is `queued` until its first item is claimed. It succeeds when every stage has ended; if some items failed, its
    outcome is `with_failures`. It fails if a stage could not be planned or all of its items failed. A run that spent
    its budget is `cancelled` with that reason and can be resumed.
    """

    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    SUCCEEDED = "succeeded", "Succeeded"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"

    @property
    def tone(self) -> str:
        return {"queued": "muted", "running": "accent", "succeeded": "good", "failed": "bad"}.get(self.value, "muted")


class RunOutcome(models.TextChoices):
    """How a succeeded run ended, if not every item is done or skipped."""

    WITH_FAILURES = "with_failures", "With failures"


ENDED = (RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED)
LIVE = (RunState.QUEUED, RunState.RUNNING)


class RunQuerySet(models.QuerySet["Run"]):
    def live(self) -> "RunQuerySet":
        return self.filter(state__in=LIVE)

    def of(self, project: Project) -> "RunQuerySet":
        return self.filter(project=project, deleting_at=None)

    def hold(self, run_id: int) -> None:
        """Lock the run's row until the transaction ends; every write to a run's items or calls takes this lock first.

        SQLite needs none: a transaction that writes locks the whole database.
        """
        if connection.features.has_select_for_update:
            self.select_for_update(no_key=True).filter(pk=run_id).values_list("pk").first()

    def stop(self) -> bool:
        """Cancel those that are live. Return False while workers hold their items: they release them within seconds,
        and those of dead workers when their leases lapse."""
        self.live().update(state=RunState.CANCELLED, finished_at=timezone.now())
        return not Item.objects.filter(run__in=self, state=ItemState.CLAIMED).exists()


class Run(RemovableRow):
    """A run that a person or script launched. `stage` is the current stage; each kind lists its stages.

    `settings` and `instructions` (versions by name) are copies from the launch, so that later changes of the project
    do not change a run in progress.

    The counters are updated by the transactions that end items and calls, so that reading them costs one row.
    """

    kind = models.CharField(max_length=20)
    params = models.JSONField(default=dict)
    settings_json = models.JSONField(default=dict)
    instructions = models.JSONField(default=dict)
    budget = models.DecimalField(max_digits=14, decimal_places=6, null=True, help_text="US dollars.")
    state = models.CharField(max_length=10, choices=RunState, default=RunState.QUEUED)
    stage = models.CharField(max_length=20, blank=True, default="")
    cloned_from = models.ForeignKey("self", models.SET_NULL, null=True, related_name="clones")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    dispatched_at = models.DateTimeField(null=True, help_text="When workers were last told that it has work.")
    error = models.TextField(blank=True, default="")
    result = models.JSONField(default=dict)
    # Rows that are in files of the storage (`calls.move`): texts of calls, then items and their calls.
    texts_moved_at = models.DateTimeField(null=True, editable=False)
    rows_moved_at = models.DateTimeField(null=True, editable=False)
    text_files = models.JSONField(default=list, editable=False)
    # `stages`: all items, as `ItemQuerySet.by_stage`; `models`: the moved calls, as `calls.totals`.
    moved = models.JSONField(null=True, editable=False)

    items_total = models.PositiveIntegerField(default=0)
    items_done = models.PositiveIntegerField(default=0)
    items_failed = models.PositiveIntegerField(default=0)
    items_skipped = models.PositiveIntegerField(default=0)
    tokens_in = models.PositiveBigIntegerField(default=0)
    tokens_out = models.PositiveBigIntegerField(default=0)
    cost = models.DecimalField(max_digits=16, decimal_places=8, default=0, help_text="US dollars, known part.")
    cost_unknown_calls = models.PositiveIntegerField(default=0)
    calls = models.PositiveIntegerField(default=0)

    objects = RunQuerySet.as_manager()

    class Meta:
        indexes: ClassVar = [
            # The runs page and `GET /projects/{slug}/runs`, newest first.
            models.Index(fields=["project", "-id"], name="run_by_project"),
            # The reaper looks at live runs only.
            models.Index(fields=["state"], name="run_live", condition=models.Q(state__in=["queued", "running"])),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"

    @property
    def label(self) -> str:
        return f"import {self.pk}" if self.kind == "import" else f"run {self.pk}"

    def stop(self) -> bool:
        return Run.objects.filter(pk=self.pk).stop()

    def blockers(self) -> Iterator[Blocker]:
        for model in _models_of_runs():
            yield from model.blockers_of(self)

    def dependents(self) -> Iterator[models.QuerySet[Any]]:
        for model in _models_of_runs():
            yield model.deleted_with(self)

    def audit_data(self) -> dict[str, object]:
        data: dict[str, object] = {
            "kind": self.kind,
            "params": self.params,
            "launched": self.created_at.isoformat(),
            "items": self.items_total,
            "calls": Call.objects.filter(run=self).count()
            + sum(totals["calls"] for totals in self.moved_models.values()),
            "cost": exact_money(self.cost),
            "cost_unknown_calls": self.cost_unknown_calls,
        }
        for model in _models_of_runs():
            data |= model.audit_data_of(self)
        return data

    @property
    def moved_models(self) -> dict[str, Any]:
        """Return the totals of its calls that are in files (`calls.totals`), by endpoint."""
        return self.moved["models"] if self.moved else {}

    @property
    def outcome(self) -> str:
        """Return `with_failures` if the run has succeeded although items failed, else ''."""
        return RunOutcome.WITH_FAILURES if self.state == RunState.SUCCEEDED and self.items_failed else ""

    @property
    def state_label(self) -> str:
        return "Succeeded with failures" if self.outcome else RunState(self.state).label

    @property
    def state_tone(self) -> str:
        return "borderline" if self.outcome else RunState(self.state).tone

    @property
    def settings(self) -> ProjectSettings:
        """Return the project's settings at the time of the launch."""
        return stored_settings(json.dumps(self.settings_json))


class DependsOnRun(models.Model):
    """A model with rows that a run made or uses. It declares which of them keep the run from being deleted, and which
    are deleted with it.

    A foreign key with CASCADE is enough where all rows are deleted. Where some stay, the key `run` has SET_NULL, and
    `deleted_if` is the condition of the others, or `deleted_with` returns them.
    """

    deleted_if: ClassVar[models.Q | None] = None

    class Meta:
        abstract = True

    @classmethod
    def blockers_of(cls, run: Run) -> Iterable[Blocker]:
        """Return the reasons to keep the run, with the number of the rows."""
        return ()

    @classmethod
    def deleted_with(cls, run: Run) -> models.QuerySet[Any]:
        """Return the rows to delete, without those that somebody has begun to use since the deletion was requested."""
        rows = cls._base_manager
        return rows.none() if cls.deleted_if is None else rows.filter(cls.deleted_if, models.Q(run=run))

    @classmethod
    def audit_data_of(cls, run: Run) -> dict[str, object]:
        """Return data of the rows for the audit log."""
        return {}


class ResultOfRun(DependsOnRun):
    """The result of one run, with a page of its own. Its deletion is the run's."""

    run = models.OneToOneField(Run, models.CASCADE, related_name="%(class)s")

    class Meta:
        abstract = True


def _models_of_runs() -> Iterator[type[DependsOnRun]]:
    return (model for model in models_from_top() if issubclass(model, DependsOnRun))


class ItemState(models.TextChoices):
    """`pending → claimed → done | failed | skipped`; an expired lease or a cancel leads back to `pending`.

    A claimed item whose model endpoint is down is `waiting`, without a worker, until it is `pending` again.
    """

    PENDING = "pending", "Pending"
    CLAIMED = "claimed", "Claimed"
    WAITING = "waiting", "Waiting"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"
    SKIPPED = "skipped", "Skipped"


OPEN = (ItemState.PENDING, ItemState.CLAIMED, ItemState.WAITING)


class ItemQuerySet(models.QuerySet["Item"]):
    def failed(self, run: Run) -> "ItemQuerySet":
        """Return the run's failed items, oldest first."""
        return self.filter(run=run, state=ItemState.FAILED).order_by("id")

    def by_stage(self) -> "models.QuerySet[Item, tuple[str, str, int, datetime | None, datetime | None]]":
        """Return stage, state, number of items, when the first was begun and when the last ended."""
        rows = self.order_by().values_list("stage", "state")
        return rows.annotate(n=models.Count("id"), a=models.Min("claimed_at"), z=models.Max("finished_at"))


class Item(models.Model):
    """One unit of a run's work, done once. `target_id` is the id of its subject; the stage knows in which table."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="items")
    stage = models.CharField(max_length=20)
    key = models.CharField(max_length=120)
    target_id = models.BigIntegerField(null=True)
    data = models.JSONField(default=dict)
    state = models.CharField(max_length=8, choices=ItemState, default=ItemState.PENDING)
    claims = models.PositiveSmallIntegerField(default=0, help_text="How often a worker took it.")
    claimed_at = models.DateTimeField(null=True, help_text="When a worker took it last.")
    suspects = models.BigIntegerField(
        null=True, help_text="One of several items whose worker died: only those with the same number run beside it."
    )
    deaths = models.PositiveSmallIntegerField(default=0, help_text="How often its worker died of it alone, in a row.")
    lease_owner = models.CharField(max_length=80, blank=True, default="")
    lease_until = models.DateTimeField(null=True)
    cache_after = models.BigIntegerField(
        null=True, help_text="Retried by a person: only calls after this id may answer it from the record."
    )
    # No foreign key: the deletion of an endpoint would have to search all items.
    waits_for = models.BigIntegerField(null=True, help_text="Id of the endpoint that was down when it was tried.")
    waiting_since = models.DateTimeField(null=True)
    reason = models.TextField(blank=True, default="", help_text="Why it failed or was skipped.")
    result = models.JSONField(default=dict)
    finished_at = models.DateTimeField(null=True)
    # How many seconds it had waited for its endpoint when this worker claimed it.
    waited = 0.0

    objects = ItemQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["run", "stage", "key"], name="item_once")]
        indexes: ClassVar = [
            # Claiming takes the oldest pending items; the run's page counts and lists by state.
            models.Index(fields=["run", "stage", "state", "id"], name="item_to_claim"),
            # The reaper finds expired leases.
            models.Index(fields=["lease_until"], name="item_lapsed", condition=models.Q(state="claimed")),
            # The reaper and the run's page read which endpoints items wait for.
            models.Index(
                fields=["run", "waits_for", "waiting_since"],
                name="item_waiting",
                condition=models.Q(waiting_since__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.stage} {self.key}"

    @property
    def reused_calls(self) -> list[int]:
        """Ids of the recorded calls, made by this item or by another, that answered it (`calls.record`)."""
        return list(self.result.get("reused_calls", ()))


class ServerOutage(models.Model):
    """The server that a live run's items need beside the models is down. These items wait: `waiting_since` without
    `waits_for`. It is deleted when the server answers again."""

    run = models.OneToOneField(Run, models.CASCADE, primary_key=True, related_name="server_outage")
    server = models.CharField(max_length=300, help_text="Its address.")
    reason = models.TextField(help_text="The first failure, in words.")
    since = models.DateTimeField()
    probe_at = models.DateTimeField(help_text="When one item may try whether it is up again.")

    def __str__(self) -> str:
        return f"{self.server} is down"


class RunEventQuerySet(models.QuerySet["RunEvent"]):
    def newest(self, run: Run) -> "RunEventQuerySet":
        return self.filter(run=run).order_by("-id")


class RunEvent(models.Model):
    """A line of a run's log."""

    class Level(models.TextChoices):
        INFO = "info", "Info"
        WARNING = "warning", "Warning"
        ERROR = "error", "Error"

    run = models.ForeignKey(Run, models.CASCADE, related_name="events")
    level = models.CharField(max_length=7, choices=Level, default=Level.INFO)
    message = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    objects = RunEventQuerySet.as_manager()

    class Meta:
        # The log of one run, and its events after an id.
        indexes: ClassVar = [models.Index(fields=["run", "id"], name="run_event_log")]

    def __str__(self) -> str:
        return self.message


class CallStatus(models.TextChoices):
    """A call is stored as `sent` before it is made, so that no call is paid for without a row."""

    SENT = "sent", "Under way"
    OK = "ok", "Answered"
    ERROR = "error", "Failed"
    LOST = "lost", "Lost with its worker"


class Call(DependsOnRun):
    """One request to a model endpoint, answered or not. `cost` is None if unknown.

    `reserved` is the most it can cost, in a run with a budget: a call of unknown cost counts as that much. `item` is
    None if its stage was planned again since; the call stays.
    """

    project = models.ForeignKey(Project, models.CASCADE, db_index=False)  # `call_by_project` begins with it
    run = models.ForeignKey(Run, models.CASCADE, related_name="recorded_calls")
    item = models.ForeignKey(Item, models.SET_NULL, null=True, related_name="calls")
    endpoint = models.ForeignKey(Endpoint, models.SET_NULL, null=True)
    endpoint_name = models.CharField(max_length=60)
    content_hash = models.CharField(max_length=64)
    instructions_hash = models.CharField(max_length=64, blank=True, default="")
    params = models.JSONField(default=dict)
    attempt = models.PositiveSmallIntegerField(default=1)
    status = models.CharField(max_length=5, choices=CallStatus, default=CallStatus.SENT)
    error_kind = models.CharField(max_length=20, blank=True, default="")
    error = models.TextField(blank=True, default="")
    finish_reason = models.CharField(max_length=30, blank=True, default="")
    tokens_in = models.PositiveIntegerField(null=True)
    tokens_out = models.PositiveIntegerField(null=True)
    tokens_cached = models.PositiveIntegerField(null=True)
    cost = models.DecimalField(max_digits=16, decimal_places=8, null=True)
    reserved = models.DecimalField(max_digits=16, decimal_places=8, null=True)
    latency_ms = models.PositiveIntegerField(null=True)
    first_token_ms = models.PositiveIntegerField(null=True, help_text="Of an answer that was streamed.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes: ClassVar = [
            # The request cache: an answered call of the project with the same content.
            models.Index(fields=["project", "content_hash"], name="call_cache", condition=models.Q(status="ok")),
            # Whether the same request is under way.
            models.Index(fields=["project", "content_hash"], name="call_in_flight", condition=models.Q(status="sent")),
            # A run's calls that a dead worker left behind.
            models.Index(fields=["item"], name="call_sent", condition=models.Q(status="sent")),
            # The list of a project's calls.
            models.Index(fields=["project", "id"], name="call_by_project"),
            # The page of a model: its calls by day.
            models.Index(fields=["project", "endpoint_name", "created_at"], name="call_by_model"),
            # The list of a run's calls; and the calls that its budget counts besides the known cost.
            models.Index(fields=["run", "id"], name="call_by_run"),
            models.Index(fields=["run"], name="call_unsettled", condition=models.Q(cost=None, reserved__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.endpoint_name} {self.status}"

    @classmethod
    def blockers_of(cls, run: Run) -> Iterator[Blocker]:
        """Items of other runs that its calls answered: without the calls, nobody could trace their results."""
        others = Item.objects.filter(run__project=run.project_id, run__deleting_at=None, result__has_key="reused_calls")
        reused: dict[int, set[int]] = {}
        for item in others.exclude(run=run).only("run_id", "result").iterator():
            reused.setdefault(item.run_id, set()).update(item.reused_calls)
        for other, calls in sorted(reused.items()):
            if count := cls.objects.filter(run=run, pk__in=IdList(sorted(calls))).count():
                url = reverse("run-page", args=[run.project.slug, other])
                yield Blocker(f"Run {other} has answers from {count:,} of its calls.", url)


class CallText(models.Model):
    """The text of an answer, in a table of its own: lists of calls do not read it, and old ones go to a file."""

    call = models.OneToOneField(Call, models.CASCADE, primary_key=True, related_name="text")
    text = models.TextField()
    thinking = models.TextField(blank=True, default="")
    tool_calls = models.JSONField(default=list)
    tokens = models.JSONField(default=dict, help_text="Ids and log-probabilities that were asked for.")

    def __str__(self) -> str:
        return self.text[:60]


class WorkerSeen(models.Model):
    """A worker process that reported recently (`curation.runs.workers.presence`); listed on the system page."""

    name = models.CharField(max_length=120, primary_key=True)
    queues = models.CharField(max_length=200)
    slots = models.PositiveSmallIntegerField(default=1)
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    sandbox = models.JSONField(default=dict, help_text="Backends of its machine: a `SandboxReport`.")
    storage = models.JSONField(default=dict, help_text="Which files it sees: a `StorageReport`.")

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name
