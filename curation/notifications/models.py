from typing import ClassVar

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import models

from curation.projects.models import Project


class NotificationKind(models.TextChoices):
    MENTION = "mention", "Mention"
    FLAG_RESOLVED = "flag_resolved", "Flag resolved"
    ASSIGNED = "assigned", "Samples assigned"
    SECOND_OPINION = "second_opinion", "Second opinion"


class NotificationQuerySet(models.QuerySet["Notification"]):
    def of(self, user: AbstractBaseUser) -> "NotificationQuerySet":
        """A person's notifications, of the projects that they can still see."""
        return self.filter(user_id=user.pk, project__in=Project.objects.visible_to(user))


class Notification(models.Model):
    """A notification for one person. `text` names the actor and the event and quotes nothing, because the page at
    `link` decides how much the person may see. `link` is a path of this site."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="notifications", db_index=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="notifications")
    kind = models.CharField(max_length=20, choices=NotificationKind)
    text = models.CharField(max_length=300)
    link = models.CharField(max_length=300)
    read_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = NotificationQuerySet.as_manager()

    class Meta:
        indexes: ClassVar = [
            # The list of a person, and the count beside the bell.
            models.Index(fields=["user", "-id"], name="notification_list"),
            models.Index(fields=["user", "read_at"], name="notification_unread"),
        ]

    def __str__(self) -> str:
        return self.text
