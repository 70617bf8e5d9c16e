"""The one filter of samples: of the page, the REST list, exports, runs and the queue. A filter is a URL.

In a URL a comma list is an OR and a repeated parameter an AND; a comma that belongs to a value is written `\\,`. In
JSON a value is a string as in the URL, a list of strings (OR), or a list of such lists (AND of ORs).
"""

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, reduce
from operator import or_
from typing import Annotated, ClassVar
from urllib.parse import quote, urlencode

from django.contrib.auth.models import User
from django.db import models
from django.http import QueryDict
from ninja import Schema
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from curation.projects.models import Project
from curation.runs.models import Run
from curation.samples.conditions import (
    FEW,
    Clause,
    HasAxis,
    IsTrajectory,
    column_in,
    column_range,
    gathered,
)
from curation.samples.models import Bucket, Flag, Kind, SampleQuerySet, Status, flag_bits, with_any_flag
from curation.samples.search import Reading, best_reading, matching
from curation.web.problems import FieldError, Invalid, NotFound, Problem

Groups = tuple[tuple[str, ...], ...]
_UNESCAPED_COMMA = re.compile(r"(?<!\\),")
_AXES: TypeAdapter[dict[str, str | list[str]]] = TypeAdapter(dict[str, str | list[str]])
_STRINGS: TypeAdapter[str | list[str] | list[list[str]]] = TypeAdapter(str | list[str] | list[list[str]])


def split_words(text: str) -> tuple[str, ...]:
    """The values of one comma list, in order and each once."""
    parts = (part.replace("\\,", ",").strip() for part in _UNESCAPED_COMMA.split(text))
    return tuple(dict.fromkeys(part for part in parts if part))


def _groups(given: object) -> Groups:
    """A JSON value as an AND of ORs."""
    value = _STRINGS.validate_python(_lists(given), strict=True)
    if isinstance(value, str):
        groups: list[tuple[str, ...]] = [split_words(value)]
    elif all(isinstance(entry, str) for entry in value):
        groups = [tuple(dict.fromkeys(str(entry) for entry in value))]
    else:
        groups = [tuple(dict.fromkeys(entry)) for entry in value]
    for word in (word for group in groups for word in group):
        if "\0" in word or not word.isascii() and any("\ud800" <= sign <= "\udfff" for sign in word):
            raise ValueError("it holds characters that no database stores")
    return tuple(group for group in groups if group)


def _lists(given: object) -> object:
    """Tuples, as our own fields hold them, are lists to the checker."""
    return [_lists(entry) for entry in given] if isinstance(given, tuple | list) else given


def _axes(given: object) -> object:
    """Axes may also come as an object: `{"task": "cleanup", "difficulty": ["1", "2"]}`."""
    if not isinstance(given, Mapping):
        return given
    axes = _AXES.validate_python(given, strict=True)
    return [
        [f"{axis}={value}" for value in ([values] if isinstance(values, str) else values)]
        for axis, values in axes.items()
    ]


def _one_of(allowed: Collection[str]) -> AfterValidator:
    def check(groups: Groups) -> Groups:
        for word in (word for group in groups for word in group):
            if word not in allowed:
                raise ValueError(f"{word!r} is not one of {', '.join(allowed)}")
        return groups

    return AfterValidator(check)


def _axis_pairs(groups: Groups) -> Groups:
    for word in (word for group in groups for word in group):
        if not all(word.partition("=")):
            raise ValueError(f"{word!r} is not of the form axis=value")
    return groups


def _numbers(groups: Groups) -> Groups:
    for word in (word for group in groups for word in group):
        if not (word.isascii() and word.isdigit() and len(word) < 19):
            raise ValueError(f"{word!r} is not the id of a run")
    return groups


def _utc(at: datetime) -> datetime:
    return at if at.tzinfo else at.replace(tzinfo=UTC)


_JSON = WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
Words = Annotated[Groups, BeforeValidator(_groups), _JSON]
Moment = Annotated[datetime, AfterValidator(_utc)]
Score = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]


class SampleFilter(Schema):
    """Which samples; without any field all of them. Unknown keys are refused."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={"examples": [{"status": "approved", "flags": ["leak", "flip"], "score_min": 66}]},
    )
    # The fields that are one of a column's values.
    columns: ClassVar[tuple[str, ...]] = ("model", "source", "repo", "action_style", "instance_id")

    bucket: Annotated[Words, _one_of(Bucket.values)] = ()
    status: Annotated[Words, _one_of(Status.values)] = ()
    kind: Annotated[Words, _one_of(Kind.values)] = ()
    flags: Annotated[Words, _one_of([flag.label for flag in Flag])] = ()
    model: Words = ()
    source: Words = ()
    repo: Words = ()
    action_style: Words = ()
    instance_id: Words = ()
    reviewer: Words = Field(default=(), description="User names of who decided.")
    run: Annotated[Words, AfterValidator(_numbers)] = Field(default=(), description="Ids of the runs that scored them.")
    axes: Annotated[Words, BeforeValidator(_axes), AfterValidator(_axis_pairs)] = Field(
        default=(), description="`axis=value` of the scenario."
    )
    score_min: Score | None = Field(default=None, description="From this score on, 0–100.")
    score_max: Score | None = Field(default=None, description="Up to and with this score.")
    created_after: Moment | None = Field(default=None, description="From this moment on.")
    created_before: Moment | None = Field(default=None, description="Before this moment.")
    text: str = Field(default="", max_length=500, description='Full text: words, `"a phrase"`, `-without`.')

    @model_validator(mode="after")
    def in_order(self) -> "SampleFilter":
        if self.score_min is not None and self.score_max is not None and self.score_min > self.score_max:
            raise ValueError("`score_min` lies above `score_max`")
        if self.created_after and self.created_before and self.created_after >= self.created_before:
            raise ValueError("`created_after` does not lie before `created_before`")
        return self

    @classmethod
    def from_query(cls, query: QueryDict, *, besides: Collection[str] = ()) -> "SampleFilter":
        """The filter of a URL, whose other parameters are named by `besides`. Raises `Problem` (400)."""
        values: dict[str, object] = {}
        for name in (name for name in query if name not in besides):
            given = [value for value in query.getlist(name) if value.strip(" ,")]
            if not given:
                continue  # an empty field of a form
            if name in SCALARS:
                if len(given) > 1:
                    raise _refusal(Problem, [FieldError(name, "it may be given only once")])
                values[name] = given[0]
            else:
                values[name] = [list(split_words(value)) for value in given]
        return _checked(values, Problem, "")

    @classmethod
    def from_json(cls, value: object, *, path: str = "filter") -> "SampleFilter":
        """The filter of a run's parameters or a recipe. Raises `Invalid` with paths such as `filter.bucket`."""
        return _checked(value, Invalid, path)

    def is_empty(self) -> bool:
        return not self.to_query()

    def to_query(self) -> str:
        """The canonical URL query: what two equal filters have in common. Without `?`."""
        pairs: list[tuple[str, str]] = []
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, tuple):
                pairs += [(name, ",".join(word.replace(",", "\\,") for word in group)) for group in value]
            elif isinstance(value, datetime):
                pairs.append((name, value.astimezone(UTC).isoformat().replace("+00:00", "Z")))
            elif value is not None and value != "":
                pairs.append((name, f"{value:g}" if isinstance(value, float) else value))
        return urlencode(pairs, safe=",:/=", quote_via=quote)

    def apply(self, rows: SampleQuerySet) -> SampleQuerySet:
        """The rows that match; `rows` come from `Sample.objects.of(project)`. A run of another project: `NotFound`."""
        return gathered(rows, self.clauses(rows))

    def clauses(self, rows: SampleQuerySet) -> list[Clause]:
        """The conditions one by one, for `curation.samples.conditions.for_page`."""
        found = [column_in(name, group) for name in self.columns for group in getattr(self, name)]
        found += [column_in("bucket", group, "score_key", "priority") for group in self.bucket]
        found += [column_in("status", group, "priority") for group in self.status]
        found += [_of_kind(group) for group in self.kind]
        found += [column_in("flags", with_any_flag(flag_bits(group))) for group in self.flags]
        found += [column_in("run_id", _run_ids(rows.project, group)) for group in self.run]
        found += [column_in("decided_by_id", _user_ids(group)) for group in self.reviewer]
        if self.axes:
            found.append(_of_axes(self.axes))
        # Rows without a score have -1 there.
        scores = {"gte": self.score_min if self.score_min is not None else 0.0, "lte": self.score_max}
        if self.score_min is not None or self.score_max is not None:
            found.append(column_range("score_key", {k: v for k, v in scores.items() if v is not None}))
        times = {"gte": self.created_after, "lt": self.created_before}
        if any(times.values()):
            found.append(column_range("created_at", {k: v for k, v in times.items() if v is not None}))
        if self.text:
            found.append(_about(self.text))
        return found


SCALARS = frozenset({"score_min", "score_max", "created_after", "created_before", "text"})


def _checked(value: object, kind: type[Problem], path: str) -> SampleFilter:
    try:
        return SampleFilter.model_validate(value)
    except ValidationError as error:
        known = ", ".join(SampleFilter.model_fields)
        errors = []
        for entry in error.errors():
            place = str(entry["loc"][0]) if entry["loc"] else ""
            unknown = entry["type"] == "extra_forbidden"
            message = f"unknown, the filter knows {known}" if unknown else entry["msg"].removeprefix("Value error, ")
            errors.append(FieldError(".".join(part for part in (path, place) if part), message))
        raise _refusal(kind, list({e.path: e for e in errors}.values())) from None


def _refusal(kind: type[Problem], errors: Sequence[FieldError]) -> Problem:
    detail = "; ".join(f"{error.path}: {error.message}" if error.path else error.message for error in errors)
    return kind(detail, code="bad_filter", errors=errors)


def _of_kind(kinds: Sequence[str]) -> Clause:
    if set(kinds) == {Kind.TRAJECTORY}:
        return Clause(
            gather=lambda rows: rows.filter(IsTrajectory(models.F("kind"))),
            walk=lambda rows: rows.filter(kind=Kind.TRAJECTORY),
            streams=frozenset({"id"}),
        )
    return Clause(gather=lambda rows: rows.filter(kind__in=kinds))


def _of_axes(groups: Groups) -> Clause:
    def gather(rows: SampleQuerySet) -> SampleQuerySet:
        rows = rows.filter(IsTrajectory(models.F("kind")))
        for group in groups:
            axes = [HasAxis(*word.split("=", 1)) for word in group]
            rows = rows.filter(reduce(or_, (models.Q(axis) for axis in axes)))
        return rows

    return Clause(gather=gather, walk=gather, streams=frozenset({"id"}), wide=True)


def _about(text: str) -> Clause:
    @cache
    def reading(using: str) -> Reading:
        return best_reading(text, few=FEW, using=using)

    return Clause(
        gather=lambda rows: matching(rows, text),
        walk=lambda rows: matching(rows, text, reading(rows.db)),
        is_few=lambda rows: reading(rows.db) is Reading.GATHER,
    )


def _run_ids(project: Project | None, ids: Sequence[str]) -> list[int]:
    if project is None:
        raise TypeError("a filter by run needs rows that come from `Sample.objects.of(project)`")
    found = list(Run.objects.of(project).filter(pk__in=[int(given) for given in ids]).values_list("pk", flat=True))
    missing = [given for given in ids if int(given) not in found]
    if missing:
        raise NotFound(f"There is no run {', '.join(missing)} in {project.slug}.")
    return found


def _user_ids(names: Sequence[str]) -> list[int]:
    """Ids of the named users; 0, which no one has, where there are none: nothing was decided by nobody."""
    return list(User.objects.filter(username__in=names).values_list("pk", flat=True)) or [0]
