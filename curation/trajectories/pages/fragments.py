"""Fragments that a trajectory's page loads: steps, more of a text, search results, a sibling, raw messages, files."""

import json

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.samples.blind import look
from curation.trajectories.models import TrajectoryText
from curation.trajectories.pages.views import trajectory_of
from curation.trajectories.session.siblings import compare_siblings
from curation.trajectories.session.steps import Session
from curation.web.ids import find
from curation.web.text.chat import Chat
from curation.web.text.responses import find_response, piece_response, position_in, raw_response, window_response
from curation.web.text.transcript import Position, Recorded, Source


@require_GET
@project_page(Scope.READ)
def trajectory_steps(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    return window_response(request, _session(access, pk, at=position_in(request)))


@require_GET
@project_page(Scope.READ)
def trajectory_turn(request: HttpRequest, access: Access, pk: str, turn: int) -> HttpResponse:
    return piece_response(request, _session(access, pk), turn)


@require_GET
@project_page(Scope.READ)
def trajectory_find(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    return find_response(request, _session(access, pk))


@require_GET
@project_page(Scope.READ)
def trajectory_raw(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    return raw_response(request, _session(access, pk), f"trajectory-{pk}")


@require_GET
@project_page(Scope.READ)
def trajectory_compare(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    """The siblings, and this trajectory beside one of them."""
    trajectory = trajectory_of(access, pk)
    look(access, trajectory.sample)
    siblings = compare_siblings(access, trajectory, other_id=request.GET.get("with", ""))
    context = {"trajectory": trajectory, "siblings": siblings}
    return render(request, "trajectories/session/_siblings.html", context)


@require_GET
@project_page(Scope.READ)
def trajectory_exchange(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    """The messages as sent to the model and received from it."""
    return window_response(request, _raw_messages(access, pk), empty="No messages were recorded.")


@require_GET
@project_page(Scope.READ)
def trajectory_exchange_turn(request: HttpRequest, access: Access, pk: str, turn: int) -> HttpResponse:
    return piece_response(request, _raw_messages(access, pk), turn)


@require_GET
@project_page(Scope.READ)
def trajectory_exchange_raw(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    return raw_response(request, _raw_messages(access, pk), f"trajectory-{pk}-exchange")


def _session(access: Access, pk: str, *, at: Position | None = None) -> Session:
    text = _text(access, pk)
    return Session(text.turns, text.pk, at=at)


def _raw_messages(access: Access, pk: str) -> Chat:
    look(access, trajectory_of(access, pk).sample)
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
