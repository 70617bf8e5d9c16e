"""Fragments that a trajectory's page loads: steps, more of a text, search results, a sibling, raw messages, files,
images.
"""

import json

from django.core.files.storage import default_storage
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from curation.projects.access import Access, project_page
from curation.projects.models import Project, Scope
from curation.samples.blind import unblind
from curation.trajectories.imported.images import key_of
from curation.trajectories.models import Trajectory, TrajectoryImage, TrajectoryText
from curation.trajectories.pages.views import trajectory_of
from curation.trajectories.session.shown import Shown, shown_as, subagent_of, view_named
from curation.trajectories.session.siblings import beside, compare_siblings
from curation.web.files import missing_file
from curation.web.ids import find
from curation.web.problems import NotFound
from curation.web.text.responses import (
    find_response,
    number_in,
    piece_response,
    position_in,
    raw_response,
    window_response,
)
from curation.web.text.transcript import WINDOW, Chat, Recorded, Source, TurnPosition


@project_page(Scope.READ, "GET")
def trajectory_steps(request: HttpRequest, access: Access, pk: str, view: str) -> HttpResponse:
    shown = _shown(access, pk, view, at=position_in(request))
    if "step" in request.GET:
        shown.at = shown.start_of(number_in(request, "step"))
    return window_response(request, shown)


@project_page(Scope.READ, "GET")
def trajectory_turn(request: HttpRequest, access: Access, pk: str, turn: int, view: str) -> HttpResponse:
    return piece_response(request, _shown(access, pk, view), turn)


@project_page(Scope.READ, "GET")
def trajectory_find(request: HttpRequest, access: Access, pk: str, view: str) -> HttpResponse:
    return find_response(request, _shown(access, pk, view))


@project_page(Scope.READ, "GET")
def trajectory_raw(request: HttpRequest, access: Access, pk: str, view: str) -> HttpResponse:
    return raw_response(request, _shown(access, pk, view), f"trajectory-{pk}")


@project_page(Scope.READ, "GET")
def trajectory_compare(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    trajectory = trajectory_of(access, pk)
    unblind(access, trajectory.sample)
    shown = shown_as(access, trajectory, view_named(trajectory, request.GET.get("view", "")))
    siblings = compare_siblings(access, trajectory, shown, other_id=request.GET.get("with", ""))
    context = {"trajectory": trajectory, "siblings": siblings, "shown_as": shown.view}
    return render(request, "trajectories/session/_siblings.html", context)


@project_page(Scope.READ, "GET")
def trajectory_beside(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    trajectory = trajectory_of(access, pk)
    mine = shown_as(access, trajectory, view_named(trajectory, request.GET.get("view", "")))
    other = find(Trajectory.objects.siblings_of(trajectory).with_text(), request.GET.get("with", ""), "sibling")
    theirs = shown_as(access, other, mine.view)
    length = max(len(mine), len(theirs))
    start, end = number_in(request, "start"), min(number_in(request, "end") or length, length)
    span = (end - WINDOW, end) if "bottom" in request.GET else (start, start + WINDOW)
    context = {"excerpt": beside(mine, theirs, start, end, [span]), "main": "main" in request.GET}
    return render(request, "transcript/_excerpt.html", context)


@project_page(Scope.READ, "GET")
def trajectory_exchange(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    """The messages as sent to the model and received from it."""
    return window_response(request, _raw_messages(access, pk), empty="No messages were recorded.")


@project_page(Scope.READ, "GET")
def trajectory_exchange_turn(request: HttpRequest, access: Access, pk: str, turn: int) -> HttpResponse:
    return piece_response(request, _raw_messages(access, pk), turn)


@project_page(Scope.READ, "GET")
def trajectory_exchange_raw(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    return raw_response(request, _raw_messages(access, pk), f"trajectory-{pk}-exchange")


def _shown(access: Access, pk: str, view: str, *, at: TurnPosition | None = None) -> Shown:
    """Return a trajectory in a view; after its id, the places of subagents may follow, as in `12-0`."""
    trajectory_id, *path = pk.split("-")
    trajectory = trajectory_of(access, trajectory_id)
    if path:
        return subagent_of(trajectory, path, at=at)
    return shown_as(access, trajectory, view, at=at)


def _raw_messages(access: Access, pk: str) -> Chat:
    unblind(access, trajectory_of(access, pk).sample)
    text = _text(access, pk)
    urls = ("trajectory-exchange", "trajectory-exchange-turn", "", "trajectory-exchange-raw")
    source = Source(text.pk, "message", *urls)
    return Chat([_as_chat_message(message) for message in text.exchange], source, agent=False)


def _as_chat_message(message: Recorded) -> Recorded:
    """Show a message with more than a role and a text, such as its thinking, as the JSON that it is."""
    if set(message) == {"role", "content"} and isinstance(message["content"], str):
        return message
    return {"role": message.get("role") or "record", "content": json.dumps(message, indent=1, ensure_ascii=False)}


def _text(access: Access, pk: str) -> TrajectoryText:
    return find(TrajectoryText.objects.filter(trajectory__project=access.project), pk, "trajectory")


# Content has its digest as its name, so it never changes.
CACHED = "private, max-age=31536000, immutable"


def image_response(project: Project, digest: str) -> HttpResponse:
    """Return the file. One that is no image by its content is only downloaded. Raises `NotFound`."""
    row = TrajectoryImage.objects.filter(trajectory__project=project, sha256=digest).first()
    if row is None:
        raise NotFound(f"There is no image {digest[:64]!r} in {project.slug}.")
    key = key_of(project.pk, digest)
    try:
        with default_storage.open(key, "rb") as file:
            response = HttpResponse(file.read(), content_type=row.media_type)
    except FileNotFoundError:
        raise NotFound(missing_file(key)) from None
    if not row.media_type.startswith("image/"):
        response["Content-Disposition"] = f'attachment; filename="{digest}"'
    response["Cache-Control"] = CACHED
    return response


@project_page(Scope.READ, "GET")
def trajectory_image(request: HttpRequest, access: Access, digest: str) -> HttpResponse:
    return image_response(access.project, digest)
