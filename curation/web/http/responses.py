"""The answers of REST calls: JSON, problems as `application/problem+json` for every failure, and versions as `ETag`.

A change answers with the row's version as its `ETag`. The answer to a read may change without the version, such as a
sample's scores or a project's counts: its `ETag` is the version, a `-` and a hash of the body. The `ETag` of a read
without a version is the hash. `If-Match` compares the version in either.
"""

import hashlib
import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, TypeVar

import orjson
from django.core.exceptions import BadRequest, RequestDataTooBig, SuspiciousOperation
from django.core.serializers.json import DjangoJSONEncoder
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotModified, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from django.utils.http import parse_etags
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, AuthorizationError, HttpError, ValidationError
from ninja.parser import Parser
from ninja.renderers import BaseRenderer

from curation.web.failures import problem_of
from curation.web.problems import (
    FieldError,
    Invalid,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    Problem,
    Stale,
    TooLarge,
    fault_of,
)
from curation.web.text.storable import read_json

logger = logging.getLogger(__name__)
PROTOBUF = "application/x-protobuf"


class JsonParser(Parser):
    """Reads request bodies of REST calls. A `Problem` reaches `on_http_error` as the cause of ninja's own error."""

    def parse_body(self, request: HttpRequest) -> Any:
        return read_json(request.body)


class JsonRenderer(BaseRenderer):
    media_type = "application/json"

    def render(self, request: HttpRequest, data: object, *, response_status: int) -> bytes:
        return orjson.dumps(data, default=str)


def problem_response(request: HttpRequest, problem: Problem) -> HttpResponse:
    """RFC 9457: `type, title, status, detail, code, errors, request_id`, and `current` where a version was stale.

    A request in protobuf, which only exporters of OpenTelemetry send, gets the format that they read.
    """
    body = {
        "type": f"urn:winnow:problem:{problem.code}",
        "title": problem.title,
        "status": problem.status,
        "detail": str(problem),
        "code": problem.code,
        "errors": [{"path": e.path, "message": e.message} for e in problem.errors],
        "request_id": request.META.get("winnow.request_id", ""),
    }
    if problem.current:
        body["current"] = problem.current
    if request.content_type == PROTOBUF:
        response = HttpResponse(_status_message(problem), status=problem.status, content_type=PROTOBUF)
    else:
        response = HttpResponse(orjson.dumps(body), status=problem.status, content_type="application/problem+json")
    if problem.retry_after is not None:
        response["Retry-After"] = str(problem.retry_after)
    if isinstance(problem, NotAuthenticated):
        response["WWW-Authenticate"] = "Bearer"
    return response


def _status_message(problem: Problem) -> bytes:
    """Return a `google.rpc.Status` with the detail as its field 2, in protobuf. OTLP leaves the other fields empty."""
    text = str(problem).encode(errors="replace")
    length, rest = bytearray(), len(text)
    while rest > 0x7F:
        length.append(0x80 | rest & 0x7F)
        rest >>= 7
    return b"\x12" + bytes([*length, rest]) + text


def install_problem_handlers(api: NinjaAPI) -> None:
    """Return every failure of a call as a problem, never a stack trace."""

    def answer(kind: type[Exception], translate: type[Problem], text: str) -> None:
        def handle(request: HttpRequest, error: Exception | type[Exception]) -> HttpResponse:
            return problem_response(request, translate(text))

        api.add_exception_handler(kind, handle)

    answer(AuthenticationError, NotAuthenticated, "Send `Authorization: Bearer wn_…`, or sign in.")
    answer(AuthorizationError, NotAllowed, "Your role or token does not allow this.")
    answer(Http404, NotFound, "There is nothing at this address.")
    for broken in (BadRequest, MultiPartParserError, SuspiciousOperation, UnreadablePostError):
        answer(broken, Problem, "The request cannot be read. Send a complete body of the declared type.")
    answer(RequestDataTooBig, TooLarge, "The body is too large. Send large data as a file.")

    @api.exception_handler(Problem)
    def on_problem(request: HttpRequest, error: Problem) -> HttpResponse:
        return problem_response(request, error)

    @api.exception_handler(ValidationError)
    def on_validation(request: HttpRequest, error: ValidationError) -> HttpResponse:
        return problem_response(request, _validation_problem(error))

    @api.exception_handler(HttpError)
    def on_http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
        cause = error.__cause__
        if isinstance(cause, RequestDataTooBig):
            return problem_response(request, TooLarge("The body is too large. Send large data as a file."))
        if isinstance(cause, Problem):
            return problem_response(request, cause)
        problem = Problem(str(error), code="bad_request" if error.status_code == 400 else f"http_{error.status_code}")
        if error.status_code != Problem.status:
            problem.status, problem.title = error.status_code, HTTPStatus(error.status_code).phrase
        return problem_response(request, problem)

    @api.exception_handler(Exception)
    def on_bug(request: HttpRequest, error: Exception) -> HttpResponse:
        if known := problem_of(error):
            return problem_response(request, known)
        logger.error("request %s failed", request.META.get("winnow.request_id"), exc_info=error)
        problem = Problem("Something went wrong on the server. Search its log for the request id.", code="internal")
        problem.status, problem.title = 500, "Internal error"
        return problem_response(request, problem)


def _validation_problem(error: ValidationError) -> Problem:
    """400 for query and path parameters, 422 for a body; every wrong field is named."""
    errors, sources = [], set()
    for entry in error.errors:
        source, *path = [str(part) for part in entry.get("loc", ())]
        sources.add(source)
        # ninja puts the name of the view's argument first, which the sender does not know
        errors.append(FieldError(".".join(path[1:] or path), fault_of(entry)))
    kind = Problem if sources & {"query", "path", "header"} else Invalid
    return kind.fields(errors, code="invalid")


# Of a call whose answers are streamed, or change with every request: they have no `ETag`, and are never 304.
WITHOUT_ETAG = "x-without-etag"


def answers_with_file(*media_types: str, has_etag: bool = True) -> dict[str, Any]:
    """Declare that the answer is a file of one of these media types."""
    content = {kind: {"schema": _schema(kind)} for kind in media_types}
    declared: dict[str, Any] = {"responses": {200: {"content": content}}}
    return declared if has_etag else {**declared, WITHOUT_ETAG: True}


def _schema(media_type: str) -> dict[str, str]:
    if media_type == "application/json":
        return {"type": "object"}
    return {"type": "string"} if media_type.startswith("text/") else {"type": "string", "format": "binary"}


V = TypeVar("V", bound=int | str)

# The answers that are compared with `If-None-Match`; metrics are not, they change with every request.
COMPARED = ("application/json", "text/markdown", "text/csv")


def version_of(state: object) -> str:
    """Return the version of an object that counts none: a digest of the values that its changes may overwrite."""
    shown = orjson.dumps(state, default=DjangoJSONEncoder().default, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(shown).hexdigest()[:16]


def set_etag(response: HttpResponse, version: int | str) -> None:
    response["ETag"] = f'"{version}"'


def seen_version(request: HttpRequest, version: V, *, now: Mapping[str, object] | None = None) -> V | None:
    """Return the row's `version` if the request's `If-Match` names it, so that it can be checked again under a lock;
    None without the header or for `*`, when nothing is checked. Raises `Stale` if the header names another version; its
    `current` has the version, and the row's values in `now`."""
    match = matches(request, version)
    if match is False:
        stale = Stale.version(request.headers["If-Match"], version)
        stale.current |= now or {}
        raise stale
    return version if match else None


def matches(request: HttpRequest, version: int | str) -> bool | None:
    """Return whether the request's `If-Match` names the version; None without the header or for `*`."""
    given = request.headers.get("If-Match", "*").strip()
    if given == "*":
        return None
    # A proxy that compresses an answer makes its tag weak. A tag of a read has a hash behind the version.
    tags = [tag.strip().removeprefix("W/").strip('"') for tag in given.split(",")]
    return any(str(version) in (tag, tag.rpartition("-")[0]) for tag in tags)


def answer_unchanged(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Return the answer to a read with an `ETag` of its content, or 304 where `If-None-Match` names that."""
    if request.method != "GET" or response.status_code != 200 or response.streaming:
        return response
    if not response.get("Content-Type", "").startswith(COMPARED):
        return response
    parts = [response["ETag"].strip('"')] if response.has_header("ETag") else []
    content = "-".join([*parts, hashlib.sha256(response.content).hexdigest()])
    response["ETag"] = etag = f'"{content}"'
    known = [tag.removeprefix("W/") for tag in parse_etags(request.headers.get("If-None-Match", ""))]
    if etag not in known and "*" not in known:
        return response
    unchanged = HttpResponseNotModified()
    unchanged["ETag"] = etag
    return unchanged
