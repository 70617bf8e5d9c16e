"""Write notifications, in the transaction of the events that they report; list them, and mark them as read."""

import re
from collections.abc import Collection
from datetime import datetime

from django.contrib.auth.models import User
from django.utils import timezone
from pydantic import Field

from curation.notifications.models import Notification, NotificationKind
from curation.projects.access import Access
from curation.projects.models import Member
from curation.web.database.queries import RowCount
from curation.web.lists.filters import ListParams, Words
from curation.web.lists.keyset import KeysetPage

# Django's usernames. One that ends a sentence takes the full stop with it, so both readings are tried.
_MENTION = re.compile(r"(?<![\w.+-])@([\w.@+-]{1,150})")
MAX_MENTIONS = 50


def notify(
    *, access: Access, user_ids: Collection[int], kind: NotificationKind, what: str, about: str, link: str
) -> None:
    """Tell members of the project, except the caller, about the caller's action, such as "ann mentioned you on sample
    12"."""
    members = Member.objects.filter(project=access.project, user__in=user_ids).exclude(user=access.user)
    text = f"{access.user.get_username()} {what} {about}"[:300]
    Notification.objects.bulk_create(
        Notification(user_id=pk, project=access.project, kind=kind, text=text, link=link)
        for pk in members.values_list("user_id", flat=True)
    )


def notify_mentioned(*, access: Access, text: str, about: str, link: str, once_since: datetime | None = None) -> None:
    """Tell the members whom the text mentions as `@username`. Names of non-members are ignored silently, so that the
    author does not learn which accounts exist. With `once_since`, a mention is not repeated to people notified since
    then."""
    names = {name for found in _MENTION.findall(text)[:MAX_MENTIONS] for name in (found, found.rstrip(".-+@"))}
    if names:
        members = Member.objects.filter(project=access.project, user__username__in=names)
        user_ids = list(members.values_list("user_id", flat=True))
        kind, what = NotificationKind.MENTION, "mentioned you on"
        if once_since is not None:
            told = Notification.objects.filter(
                user__in=user_ids, project=access.project, kind=kind, link=link, created_at__gte=once_since
            )
            told = told.filter(text__startswith=f"{access.user.get_username()} {what}")
            user_ids = sorted(set(user_ids) - set(told.values_list("user_id", flat=True)))
        notify(access=access, user_ids=user_ids, kind=kind, what=what, about=about, link=link)


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
