from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.crypto import salted_hmac

from curation.projects.models import Project


class WebhookEvent(models.TextChoices):
    RUN_FINISHED = "run.finished", "A run ended"
    REVIEW_DECIDED = "review.decided", "A sample was decided"
    EXPORT_READY = "export.ready", "An export is ready"


# The event of the button *Test*; nothing subscribes to it.
TEST = "test"


class Webhook(models.Model):
    """An address that events are sent to. Its signing secret is derived from the server's key, not stored."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="webhooks")
    url = models.URLField(max_length=500)
    events = models.JSONField(default=list)
    nonce = models.CharField(max_length=32)
    previous_nonce = models.CharField(max_length=32, blank=True, default="")
    previous_until = models.DateTimeField(
        null=True, help_text="Until then messages are signed with the old secret too."
    )
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["id"]

    def __str__(self) -> str:
        return self.url

    @property
    def secret(self) -> str:
        """`whsec_` and the key of this webhook's signatures in base64. It changes with the server's `SECRET_KEY`."""
        return _secret_of(self.nonce)

    def valid_secrets(self) -> list[str]:
        """The secret, and the one before it while that is valid."""
        old = self.previous_until is not None and self.previous_until > timezone.now()
        return [self.secret, *([_secret_of(self.previous_nonce)] if old else [])]


def _secret_of(nonce: str) -> str:
    # 64 hexadecimal digits are base64 too, of 48 bytes.
    return f"whsec_{salted_hmac('curation.webhooks', nonce, algorithm='sha256').hexdigest()}"


class DeliveryState(models.TextChoices):
    """`pending → delivered | failed`; a pending delivery is tried again at `due_at`."""

    PENDING = "pending", "Waiting"
    DELIVERED = "delivered", "Delivered"
    FAILED = "failed", "Given up"

    @property
    def tone(self) -> str:
        return {"delivered": "good", "failed": "bad"}.get(self.value, "muted")


class Delivery(models.Model):
    """One event for one webhook, written in the event's transaction."""

    webhook = models.ForeignKey(Webhook, models.CASCADE, related_name="deliveries")
    event = models.CharField(max_length=20, choices=WebhookEvent)
    body = models.JSONField()
    state = models.CharField(max_length=9, choices=DeliveryState, default=DeliveryState.PENDING)
    attempts = models.PositiveSmallIntegerField(default=0)
    due_at = models.DateTimeField()
    status = models.PositiveSmallIntegerField(null=True, help_text="HTTP status of the last try.")
    error = models.CharField(max_length=500, blank=True, default="")
    latency_ms = models.PositiveIntegerField(null=True, help_text="How long the last try took.")
    response = models.CharField(max_length=500, blank=True, default="", help_text="How the last response begins.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes: ClassVar = [
            # The worker takes due deliveries, the oldest first.
            models.Index(fields=["due_at"], name="delivery_due", condition=models.Q(state="pending")),
            # The last deliveries of a webhook on the settings page.
            models.Index(fields=["webhook", "-id"], name="delivery_by_webhook"),
        ]

    def __str__(self) -> str:
        return f"{self.event} to {self.webhook_id}"

    @property
    def message_id(self) -> str:
        """The same at each try, and another one on each server."""
        return f"msg_{salted_hmac('curation.webhooks.message', str(self.pk)).hexdigest()[:32]}"

    @property
    def state_choice(self) -> DeliveryState:
        return DeliveryState(self.state)
