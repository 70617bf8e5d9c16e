"""The page behind the bell, and the REST calls of notifications."""

from datetime import datetime

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST
from ninja import Query, Router, Status
from pydantic import Field

from curation.notifications.models import Notification
from curation.notifications.notify import NotificationList, mark_read
from curation.projects.access import principal_of
from curation.projects.models import Scope
from curation.web.ids import find
from curation.web.lists.pages import list_context
from curation.web.schemas import Id, Out, Page, Set


@require_GET
@login_required
def notification_list(request: HttpRequest) -> HttpResponse:
    params = NotificationList.from_query(request.GET)
    context = list_context(request, params, params.rows(_user(request, Scope.READ)), "/api/v1/notifications")
    return render(request, "notifications/list.html", context)


@require_POST
@login_required
def notification_open(request: HttpRequest, pk: str) -> HttpResponse:
    """Mark one as read and go where it leads."""
    user = _user(request, Scope.REVIEW)
    row = find(Notification.objects.of(user), pk, "notification")
    mark_read(user, row.pk)
    return redirect(row.link)


@require_POST
@login_required
def notification_read_all(request: HttpRequest) -> HttpResponse:
    mark_read(_user(request, Scope.REVIEW))
    return redirect("notification-list")


router = Router(tags=["notifications"])


class NotificationOut(Out):
    """`text` names the person and the event; the page at `link`, or its call, checks your access again."""

    id: Id = Field(examples=["12"])
    project: str = Field(validation_alias="project.slug", examples=["demo"])
    kind: str = Field(examples=["mention"], description="mention, flag_resolved, assigned or second_opinion")
    text: str = Field(examples=["ann mentioned you on sample 4711"])
    link: str = Field(examples=["/p/demo/samples/4711/"])
    read: Set = Field(validation_alias="read_at", examples=[False])
    created_at: datetime


@router.get("/notifications", response=Page[NotificationOut], summary="Your notifications")
def list_notifications(request: HttpRequest, params: Query[NotificationList]) -> dict[str, object]:
    return params.rows(_user(request, Scope.READ)).response()


@router.post("/notifications/read", response={204: None}, summary="Mark all as read")
def post_all_read(request: HttpRequest) -> Status[None]:
    mark_read(_user(request, Scope.REVIEW))
    return Status(204, None)


@router.post("/notifications/{notification_id}/read", response={204: None}, summary="Mark one as read")
def post_read(request: HttpRequest, notification_id: str) -> Status[None]:
    user = _user(request, Scope.REVIEW)
    mark_read(user, find(Notification.objects.of(user), notification_id, "notification").pk)
    return Status(204, None)


def _user(request: HttpRequest, scope: str) -> User:
    principal = principal_of(request)
    principal.require(scope)
    return principal.user
