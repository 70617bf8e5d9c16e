"""Parts of a trajectory's page loaded on demand: steps of a gap, more of a text, a sibling, the raw exchange, files."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.trajectories.models import TrajectoryText
from curation.trajectories.pages.views import trajectory_of
from curation.trajectories.session.exchange import exchange_of, exchange_text
from curation.trajectories.session.find import find_turns
from curation.trajectories.session.siblings import beside
from curation.trajectories.session.steps import raw_text, stretch_of, window
from curation.web.ids import find
from curation.web.problems import NotFound

LONGEST_SEARCH = 200


@require_GET
@project_page(Scope.READ)
def trajectory_steps(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    """A window of the gap `start`–`end`, from its top or with `bottom` from its end."""
    text = _text(access, pk)
    start, end = _number(request, "start"), _number(request, "end")
    parts = window(text.turns, start=start, end=end, bottom="bottom" in request.GET)
    context = {"parts": parts, "pk": text.pk, "project": access.project, "main": "main" in request.GET}
    return render(request, "trajectories/session/_steps.html", context)


@require_GET
@project_page(Scope.READ)
def trajectory_turn(request: HttpRequest, access: Access, pk: str, turn: int) -> HttpResponse:
    """More of one turn's text, from the character `start` on."""
    text = _text(access, pk)
    if turn >= len(text.turns):
        raise NotFound(f"Trajectory {pk} has no turn {turn}.")
    wanted = request.GET.get("q", "")[:LONGEST_SEARCH]
    stretch = stretch_of(text.turns, turn, _number(request, "start"), wanted=wanted)
    context = {"stretch": stretch, "turn": turn, "pk": text.pk, "project": access.project}
    return render(request, "trajectories/session/_turn.html", context)


@require_GET
@project_page(Scope.READ)
def trajectory_find(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    """The turns that hold the text `q`."""
    text = _text(access, pk)
    wanted = request.GET.get("q", "").strip()[:LONGEST_SEARCH]
    context = {"found": find_turns(text.turns, wanted), "wanted": wanted, "pk": text.pk, "project": access.project}
    return render(request, "trajectories/session/_found.html", context)


@require_GET
@project_page(Scope.READ)
def trajectory_compare(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    """The siblings, and this trajectory beside one of them."""
    trajectory = trajectory_of(access, pk)
    context = {
        "trajectory": trajectory,
        "beside": beside(trajectory, other_id=request.GET.get("with", "")),
        "project": access.project,
    }
    return render(request, "trajectories/session/_siblings.html", context)


@require_GET
@project_page(Scope.READ)
def trajectory_raw(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    """The session as the terminal showed it, or one turn of it, as a plain text file."""
    text = _text(access, pk)
    turn = request.GET.get("turn", "")
    if turn.isascii() and turn.isdigit() and len(turn) < 9 and int(turn) < len(text.turns):
        return _file(str(text.turns[int(turn)].get("text") or ""), f"trajectory-{pk}-turn-{turn}.txt")
    return _file(raw_text(text.turns), f"trajectory-{pk}.txt")


@require_GET
@project_page(Scope.READ)
def trajectory_exchange(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    """Messages of the raw exchange, from number `start` on."""
    text = _text(access, pk)
    exchange = exchange_of(text.exchange, start=_number(request, "start"))
    context = {"exchange": exchange, "pk": text.pk, "project": access.project}
    return render(request, "trajectories/session/_exchange.html", context)


@require_GET
@project_page(Scope.READ)
def trajectory_exchange_raw(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    return _file(exchange_text(_text(access, pk).exchange), f"trajectory-{pk}-exchange.txt")


def _text(access: Access, pk: str) -> TrajectoryText:
    return find(TrajectoryText.objects.filter(trajectory__project=access.project), pk, "trajectory")


def _file(text: str, name: str) -> HttpResponse:
    response = HttpResponse(text, content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'inline; filename="{name}"'
    return response


def _number(request: HttpRequest, name: str) -> int:
    given = request.GET.get(name, "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 12 else 0
