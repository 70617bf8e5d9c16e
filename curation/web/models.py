"""The response to a request that may be sent twice."""

from django.db import models


class IdempotentResponse(models.Model):
    """The response to a POST with an `Idempotency-Key`; `status` is 0 while the request is in progress.

    `created_at` is when it was claimed.
    """

    owner = models.CharField(max_length=64, help_text="SHA-256 of the credential that sent it.")
    key = models.CharField(max_length=255)
    request_hash = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(default=0)
    body = models.BinaryField(default=b"")
    content_type = models.CharField(max_length=100, default="")
    location = models.CharField(max_length=200, default="")
    etag = models.CharField(max_length=200, default="")
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "key"], name="idempotent_answer_once")]
        # The reaper deletes by age (`http.idempotency.delete_expired`).
        indexes = [models.Index(fields=["created_at"], name="idempotent_answer_age")]

    def __str__(self) -> str:
        return self.key
