"""Model endpoints, and what all workers share about each: slots in use and the pace of calls."""

from datetime import UTC, datetime
from typing import ClassVar

from django.db import models
from django.utils import timezone

from curation.projects.models import Project


class EndpointQuerySet(models.QuerySet["Endpoint"]):
    def of(self, project: Project) -> "EndpointQuerySet":
        return self.filter(project=project).select_related("project")


class Endpoint(models.Model):
    """A model that runs can call. `model` is a LiteLLM string, or `scripted/…` for an offline scripted model.

    `endpoints/check.py` checks the values. Prices are US dollars per 1,000,000 tokens; None is unknown, 0 is free.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="endpoints")
    name = models.CharField(max_length=60)
    model = models.CharField(max_length=200)
    api_base = models.CharField(max_length=300, blank=True, default="")
    api_key_env = models.CharField(
        max_length=100,
        blank=True,
        default="",
        help_text="Name of the environment variable with the key; the key itself is never stored.",
    )
    params = models.JSONField(default=dict, blank=True)
    max_concurrency = models.PositiveIntegerField(default=16)
    rpm = models.PositiveIntegerField(null=True, blank=True, help_text="Requests per minute.")
    tpm = models.PositiveIntegerField(null=True, blank=True, help_text="Tokens per minute.")
    price_in = models.DecimalField(max_digits=14, decimal_places=6, null=True, blank=True)
    price_out = models.DecimalField(max_digits=14, decimal_places=6, null=True, blank=True)
    family = models.CharField(max_length=60, blank=True, default="", help_text="Such as `qwen`, for self-preference.")
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = EndpointQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["project", "name"], name="endpoint_name_once")]

    def __str__(self) -> str:
        return self.name

    @property
    def is_scripted(self) -> bool:
        return self.model.startswith("scripted/")

    @property
    def outage(self) -> "EndpointPace | None":
        """Why no call is sent to it, and until when; None if it is up. Lists need `select_related("pace")`."""
        pace: EndpointPace | None = getattr(self, "pace", None)  # its row is made with the first call
        return pace if pace is not None and pace.down_since else None


class EndpointPaceQuerySet(models.QuerySet["EndpointPace"]):
    def down(self) -> "EndpointPaceQuerySet":
        return self.exclude(down_since=0.0)

    def end_outage(self, endpoint_id: int) -> None:
        """All workers may call the endpoint again."""
        self.filter(pk=endpoint_id).update(down_since=0.0, down_reason="", probe_at=0.0)


class EndpointPace(models.Model):
    """When the next request fits into `rpm` and `tpm`, and what pauses all calls: a storm of 429s, or an outage.

    Its row lock also serialises the distribution of slots. `down_since` is 0 while the endpoint is up.
    """

    endpoint = models.OneToOneField(Endpoint, models.CASCADE, primary_key=True, related_name="pace")
    requests_free_at = models.FloatField(default=0.0, help_text="Unix seconds.")
    tokens_free_at = models.FloatField(default=0.0, help_text="Unix seconds.")
    cooldown_until = models.FloatField(default=0.0, help_text="Unix seconds.")
    down_since = models.FloatField(default=0.0, help_text="Unix seconds.")
    down_reason = models.TextField(blank=True, default="", help_text="The first failure of the outage, in words.")
    probe_at = models.FloatField(default=0.0, help_text="Unix seconds: when one call may try whether it is up again.")

    objects = EndpointPaceQuerySet.as_manager()

    def __str__(self) -> str:
        return f"pace of {self.endpoint}"

    @property
    def down_at(self) -> datetime:
        return datetime.fromtimestamp(self.down_since, UTC)

    @property
    def next_try_at(self) -> datetime:
        """When a worker may try an endpoint that is down; now if that is due, since one with work for it must run."""
        return max(datetime.fromtimestamp(self.probe_at, UTC), timezone.now())


class EndpointShare(models.Model):
    """How many of an endpoint's `max_concurrency` slots one worker process has; a silent worker's share expires."""

    endpoint = models.ForeignKey(Endpoint, models.CASCADE, related_name="shares")
    holder = models.CharField(max_length=80)
    wanted = models.PositiveIntegerField()
    granted = models.PositiveIntegerField()
    seen_at = models.FloatField(help_text="Unix seconds.")

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["endpoint", "holder"], name="endpoint_share_once")]

    def __str__(self) -> str:
        return f"{self.holder}: {self.granted}"
