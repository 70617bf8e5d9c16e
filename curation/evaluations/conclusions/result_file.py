"""The result of an evaluation as one file: its figures, its conclusions, and every call or episode."""

from collections.abc import Iterator

import orjson
from django.core.serializers.json import DjangoJSONEncoder
from pydantic import BaseModel

from curation.evaluations.live.figures import live_figures
from curation.evaluations.live.schemas import EpisodeDetail
from curation.evaluations.models import ContaminationCheck, Episode, Evaluation, EvaluationKind, ScreenedAnswer
from curation.evaluations.screen.figures import figures_of
from curation.evaluations.screen.schemas import ScreenedOut, evaluation_out

CHUNK = 500
_INDENT = orjson.OPT_INDENT_2


def result_file(evaluation: Evaluation) -> Iterator[bytes]:
    """Yield the parts of one JSON object: the evaluation as REST returns it, with `conclusions`, and `calls` or
    `episodes` with their steps. Needs `project`, `run` and `split`."""
    live = evaluation.kind == EvaluationKind.LIVE
    check = ContaminationCheck.objects.newest(evaluation.split)
    figures = live_figures(evaluation) if live else figures_of(evaluation, check)
    head = evaluation_out(evaluation, figures, check)
    text = orjson.dumps(head, default=_plain, option=_INDENT)
    yield text.removesuffix(b"\n}") + (b',\n  "episodes": [' if live else b',\n  "calls": [')
    separator = b"\n"
    for entry in _episodes(evaluation) if live else _calls(evaluation):
        yield separator + orjson.dumps(entry, default=DjangoJSONEncoder().default)
        separator = b",\n"
    yield b"\n  ]\n}\n"


def _plain(value: object) -> object:
    return value.model_dump() if isinstance(value, BaseModel) else DjangoJSONEncoder().default(value)


def _calls(evaluation: Evaluation) -> Iterator[dict[str, object]]:
    rows = ScreenedAnswer.objects.filter(evaluation=evaluation).with_texts().order_by("row_id", "by__place")
    return (ScreenedOut.model_validate(row).model_dump() for row in rows.iterator(CHUNK))


def _episodes(evaluation: Evaluation) -> Iterator[dict[str, object]]:
    rows = Episode.objects.filter(evaluation=evaluation).select_related("by", "text").order_by("pk")
    return (EpisodeDetail.model_validate(row).model_dump() for row in rows.iterator(CHUNK))
