"""The fragments and files of a transcript. Each app has URLs for them, which its `Source` names."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from curation.web.ids import number
from curation.web.problems import NotFound
from curation.web.text.transcript import Entry, Position, Transcript

LONGEST_SEARCH = 200


def window_response(request: HttpRequest, transcript: Transcript[Entry], *, empty: str = "") -> HttpResponse:
    """Entries of the gap from `start` to `end`: the first ones, or with `bottom` the last ones. If the transcript is
    opened at a turn, its opening."""
    end = number_in(request, "end") or len(transcript)
    if transcript.at:
        excerpt = transcript.opening()
    else:
        excerpt = transcript.window(number_in(request, "start"), end, bottom="bottom" in request.GET)
    context = {"excerpt": excerpt, "main": "main" in request.GET, "empty": empty}
    return render(request, "transcript/_excerpt.html", context)


def position_in(request: HttpRequest) -> Position | None:
    """Return the `turn` that must be shown, from its character `start`; None if the request names none."""
    return Position(number_in(request, "turn"), number_in(request, "start")) if request.GET.get("turn") else None


def piece_response(request: HttpRequest, transcript: Transcript[Entry], turn: int) -> HttpResponse:
    """More of one turn's text, from the character `start`; with `q` from before the first match."""
    if turn >= len(transcript.turns):
        raise NotFound(f"This transcript has no turn {turn}.")
    piece = transcript.piece(turn, number_in(request, "start"), wanted=request.GET.get("q", "")[:LONGEST_SEARCH])
    return render(request, "transcript/_piece.html", {"piece": piece, "source": transcript.source})


def find_response(request: HttpRequest, transcript: Transcript[Entry]) -> HttpResponse:
    """The turns that contain `q`."""
    found = transcript.find(request.GET.get("q", "").strip()[:LONGEST_SEARCH])
    return render(request, "transcript/_found.html", {"found": found, "source": transcript.source})


def raw_response(request: HttpRequest, transcript: Transcript[Entry], name: str) -> HttpResponse:
    """The transcript, or one `turn` of it, as a plain text file."""
    turn = request.GET.get("turn", "")
    if turn and number_in(request, "turn") < len(transcript.turns):
        text, name = transcript.raw_text(number_in(request, "turn")), f"{name}-turn-{turn}"
    else:
        text = transcript.raw()
    response = HttpResponse(text, content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'inline; filename="{name}.txt"'
    return response


def number_in(request: HttpRequest, name: str) -> int:
    """Return a parameter as a number; 0 for anything else."""
    return number(request.GET.get(name, ""), digits=11) or 0
