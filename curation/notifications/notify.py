"""Write notifications, in the transaction of the events they report."""

import re
from collections.abc import Collection
from datetime import datetime

from curation.notifications.models import Notification, NotificationKind
from curation.projects.access import Access
from curation.projects.models import Member

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
