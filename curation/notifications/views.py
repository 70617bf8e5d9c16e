"""The page behind the bell."""

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from curation.notifications.models import Notification
from curation.notifications.notify import NotificationList, mark_read
from curation.projects.access import principal_of
from curation.web.ids import find
from curation.web.lists.pages import list_context


@require_GET
@login_required
def notification_list(request: HttpRequest) -> HttpResponse:
    params = NotificationList.from_query(request.GET)
    context = list_context(request, params, params.rows(_user(request)), "/api/v1/notifications")
    return render(request, "notifications/list.html", context)


@require_POST
@login_required
def notification_open(request: HttpRequest, pk: str) -> HttpResponse:
    """Mark one as read and go where it leads."""
    user = _user(request)
    row = find(Notification.objects.of(user), pk, "notification")
    mark_read(user, row.pk)
    return redirect(row.link)


@require_POST
@login_required
def notification_read_all(request: HttpRequest) -> HttpResponse:
    mark_read(_user(request))
    return redirect("notification-list")


def _user(request: HttpRequest) -> User:
    return principal_of(request).user
