"""The fragments and files of a transcript. Each app has URLs for them, which its `Source` names."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from curation.web.ids import number
from curation.web.problems import NotFound
from curation.web.text.transcript import Transcript, TurnPosition

LONGEST_SEARCH = 200
# Lines of an outline that a page gets at once.
OUTLINE = 300


def window_response(request: HttpRequest, transcript: Transcript[Any], *, empty: str = "") -> HttpResponse:
    """Entries of the gap from `start` to `end`: the first ones, or with `bottom` the last ones. If the transcript is
    opened at a turn, its opening."""
    end = number_in(request, "end") or len(transcript)
    if transcript.at:
        excerpt = transcript.opening()
    else:
        excerpt = transcript.window(number_in(request, "start"), end, bottom="bottom" in request.GET)
    context = {"excerpt": excerpt, "main": "main" in request.GET, "empty": empty}
    return render(request, "transcript/_excerpt.html", context)


def position_in(request: HttpRequest) -> TurnPosition | None:
    """Return the `turn` that must be shown, from its character `start` or its `line`; None if none is named."""
    if not request.GET.get("turn"):
        return None
    return TurnPosition(number_in(request, "turn"), number_in(request, "start"), number_in(request, "line"))


def piece_response(request: HttpRequest, transcript: Transcript[Any], turn: int) -> HttpResponse:
    """More of one turn's text, from the character `start`; with `q` from before the first match."""
    if turn >= len(transcript.turns):
        raise NotFound(f"This transcript has no turn {turn}.")
    piece = transcript.piece(turn, number_in(request, "start"), wanted=request.GET.get("q", "")[:LONGEST_SEARCH])
    return render(request, "transcript/_piece.html", {"piece": piece, "source": transcript.source})


def find_response(request: HttpRequest, transcript: Transcript[Any]) -> HttpResponse:
    """The turns that contain `q`; with `outline` one line for each turn, command or error."""
    if "outline" in request.GET:
        return _outline_response(request, transcript)
    wanted = request.GET.get("q", "").strip()[:LONGEST_SEARCH]
    turns, total = transcript.find(wanted)
    context = {"wanted": wanted, "turns": turns, "total": total, "source": transcript.source}
    return render(request, "transcript/_found.html", context)


def _outline_response(request: HttpRequest, transcript: Transcript[Any]) -> HttpResponse:
    """Up to `OUTLINE` lines from the one numbered `start` on, with how many there are of each kind."""
    lines = list(transcript.landmarks())
    kinds = {
        "turns": lines,
        "commands": [line for line in lines if "command" in line.marks],
        "errors": [line for line in lines if line.error],
        "labels": [line for line in lines if line.label],
    }
    kinds |= {f"{mark}s": [line for line in lines if mark in line.marks] for mark in ("edit", "test", "loop")}
    # The kinds that only sessions have are offered where there are some.
    kinds = {kind: found for kind, found in kinds.items() if found or kind in ("turns", "commands", "errors")}
    which = request.GET["outline"] if request.GET["outline"] in kinds else "turns"
    start = number_in(request, "start")
    context = {
        "source": transcript.source,
        "which": which,
        "counts": [(kind, len(found)) for kind, found in kinds.items()],
        "lines": kinds[which][start : start + OUTLINE],
        "start": start,
        "next_start": start + OUTLINE if start + OUTLINE < len(kinds[which]) else None,
        "left": len(kinds[which]) - start - OUTLINE,
        "last": len(transcript.turns) - 1,
    }
    return render(request, "transcript/_outline.html", context)


def raw_response(request: HttpRequest, transcript: Transcript[Any], name: str) -> HttpResponse:
    """The transcript, or one `turn` of it, as a plain text file; a turn that is an image as that."""
    turn = request.GET.get("turn", "")
    if turn and number_in(request, "turn") < len(transcript.turns):
        image = transcript.image(number_in(request, "turn"))
        if image is not None and image.data:
            return HttpResponse(image.data, content_type=image.media_type)
        text, name = transcript.raw_text(number_in(request, "turn")), f"{name}-turn-{turn}"
    else:
        text = transcript.raw()
    response = HttpResponse(text, content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'inline; filename="{name}.txt"'
    return response


def number_in(request: HttpRequest, name: str) -> int:
    """Return 0 if the parameter is no number."""
    return number(request.GET.get(name, ""), digits=11) or 0
