"""Validate the answers to a question."""

from collections.abc import Mapping
from typing import cast

from curation.labels.models import Question, QuestionKind
from curation.web.text.figures import counted
from curation.web.text.storable import text_errors

MAX_TEXT, MAX_SPANS = 5_000, 200
Span = dict[str, object]


class BadValue(Exception):
    """Why a value does not answer its question, in words that follow the question's name."""


def checked_value(question: Question, given: object, *, texts: Mapping[str, str]) -> object:
    """Return the answer in the form in which it is stored. `texts` has the text behind each `field@revision` that the
    spans name. Raises `BadValue`."""
    match question.kind:
        case QuestionKind.LABEL:
            return _choice(question, given)
        case QuestionKind.RATING:
            if isinstance(given, bool) or not isinstance(given, int):
                raise BadValue("is a whole number")
            return _choice(question, given)
        case QuestionKind.MULTI_LABEL:
            if not isinstance(given, list) or not given:
                raise BadValue("is a list of choices; null takes the answer back")
            chosen = [_choice(question, one) for one in given]
            return [choice for choice in question.choices if choice in chosen]
        case QuestionKind.SPAN:
            if not isinstance(given, list) or not 0 < len(given) <= MAX_SPANS:
                raise BadValue(f"is a list of 1 to {MAX_SPANS} spans; null takes the answer back")
            spans = [_span(question, one, texts) for one in given]
            return [span for place, span in enumerate(spans) if span not in spans[:place]]
    if not isinstance(given, str) or not given.strip():
        raise BadValue("is a text; null takes the answer back")
    if wrong := text_errors("", given, at_most=MAX_TEXT):
        raise BadValue(wrong[0].message)
    return given.strip()


def span_key(span: Mapping[str, object]) -> str:
    """The name of the text that a span is about: its field, and its revision where it has one."""
    return f"{span.get('field')}@{span.get('revision') or ''}"


def words_of(question: Question, value: object) -> list[str]:
    """The choices in a stored answer, each once, as filters name them."""
    match question.kind:
        case QuestionKind.TEXT:
            return []
        case QuestionKind.SPAN:
            return sorted({str(span["label"]) for span in cast(list[Span], value)})
        case QuestionKind.MULTI_LABEL:
            return list(cast(list[str], value))
    return [str(value)]


def _choice(question: Question, given: object) -> object:
    if given not in question.choices or isinstance(given, bool):
        raise BadValue(f"is one of {', '.join(map(str, question.choices))}, not {given!r}")
    return given


def _span(question: Question, given: object, texts: Mapping[str, str]) -> Span:
    if not isinstance(given, dict) or set(given) - {"field", "revision", "start", "end", "label"}:
        raise BadValue("has spans with `field`, `start`, `end`, `label` and optionally `revision`")
    text = texts.get(span_key(given))
    if text is None:
        raise BadValue("names a field or a revision that this sample does not have")
    start, end = given.get("start"), given.get("end")
    if not all(isinstance(at, int) and not isinstance(at, bool) for at in (start, end)):
        raise BadValue("has a span whose `start` and `end` are not whole numbers")
    if not 0 <= cast(int, start) < cast(int, end) <= len(text):
        raise BadValue(f"has a span from {start} to {end}, but that text has {counted(len(text), 'character')}")
    label = _choice(question, given.get("label"))
    revision = given.get("revision")
    return {"field": given["field"], "revision": revision, "start": start, "end": end, "label": label}
