from django.contrib.auth.models import User
from django.utils import timezone
from pydantic import Field

from curation.notifications.models import Notification
from curation.web.database.prepared import RowCount
from curation.web.lists.filters import Words
from curation.web.lists.keyset import KeysetPage
from curation.web.lists.params import ListParams


class NotificationList(ListParams):
    """Your notifications, the newest first."""

    project: Words = Field(default=(), description="Slugs of projects.")
    unread: bool | None = Field(default=None, description="Only those that you have not read, or that you have.")

    lookups = {"project": "project__slug"}

    def rows(self, user: User) -> KeysetPage[Notification]:
        rows = self.narrow(Notification.objects.of(user))
        if self.unread is not None:
            rows = rows.filter(read_at__isnull=self.unread)
        return self.page(rows.select_related("project"))


def unread_count(user: int) -> RowCount:
    """The unread notifications of the user with this id as a column, counted up to 100."""
    return RowCount(Notification.objects.filter(user=user, read_at=None).order_by()[:100])


def mark_read(user: User, pk: int | None = None) -> None:
    rows = Notification.objects.of(user).filter(read_at=None)
    (rows if pk is None else rows.filter(pk=pk)).update(read_at=timezone.now())
