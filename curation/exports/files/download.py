"""Downloads: any byte range of a file, or of the archive of all files, streamed from storage in small pieces."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO

from django.core.files.storage import default_storage
from django.http import HttpRequest, HttpResponse, HttpResponseNotModified, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header, parse_etags

PIECE = 256 * 1024
_ONE_RANGE = re.compile(r"(\d*)-(\d*)")


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a download: bytes at hand (`data`) or a whole file in storage (`stored_as`), and its length."""

    length: int
    data: bytes = b""
    stored_as: str = ""


@dataclass(frozen=True, slots=True)
class Download:
    """Something to send. `etag` is its version; `sha256` in hex where it is known beforehand, else empty."""

    name: str
    media_type: str
    etag: str
    segments: Sequence[Segment]
    sha256: str = ""

    @property
    def length(self) -> int:
        return sum(segment.length for segment in self.segments)


def respond(request: HttpRequest, download: Download) -> HttpResponseBase:
    """200, 206, 304 or 416 after RFC 9110: one range is answered, several at once are answered with the whole."""
    etag, total = f'"{download.etag}"', download.length
    if _unchanged(request, etag):
        response: HttpResponseBase = HttpResponseNotModified()
    else:
        wanted = _range(request, etag, total)
        if wanted is None:
            response = _stream(request, download, 0, total)
        elif wanted.start >= wanted.stop:
            response = HttpResponse(status=416)
            response["Content-Range"] = f"bytes */{total}"
        else:
            response = _stream(request, download, wanted.start, wanted.stop)
            response.status_code = 206
            response["Content-Range"] = f"bytes {wanted.start}-{wanted.stop - 1}/{total}"
    response["ETag"] = etag
    response["Accept-Ranges"] = "bytes"
    response["Cache-Control"] = "private, no-transform"
    response["Content-Disposition"] = content_disposition_header(True, download.name) or "attachment"
    if download.sha256:
        response["X-Content-Sha256"] = download.sha256
    return response


def media_type(name: str) -> str:
    """By the ending of the names that exports use."""
    endings = {".jsonl": "application/x-ndjson", ".json": "application/json", ".gz": "application/gzip"}
    endings |= {".md": "text/markdown; charset=utf-8", ".tar": "application/x-tar"}
    return next((kind for ending, kind in endings.items() if name.endswith(ending)), "application/octet-stream")


def _unchanged(request: HttpRequest, etag: str) -> bool:
    known = parse_etags(request.headers.get("If-None-Match", ""))
    return "*" in known or etag in [tag.removeprefix("W/") for tag in known]


def _range(request: HttpRequest, etag: str, total: int) -> range | None:
    """The bytes asked for; an empty range where none of them exists, None where the whole is to be sent.

    A header that is not understood is ignored, as is one whose `If-Range` names another version (or a date: there is
    no `Last-Modified`).
    """
    header = request.headers.get("Range", "")
    unit, _, sets = header.partition("=")
    if unit.strip().lower() != "bytes" or request.method != "GET":
        return None
    condition = request.headers.get("If-Range")
    if condition is not None and condition.strip() != etag:
        return None
    found = [_one_range(part.strip(), total) for part in sets.split(",")]
    ranges = [part for part in found if part is not None]
    if len(ranges) != len(found):
        return None
    satisfiable = [part for part in ranges if part]
    if not satisfiable:
        return range(0)
    return satisfiable[0] if len(ranges) == 1 else None


def _one_range(text: str, total: int) -> range | None:
    match = _ONE_RANGE.fullmatch(text)
    if match is None or text == "-" or max(map(len, match.groups())) > 18:
        return None
    first, last = match.groups()
    if not first:
        return range(max(total - int(last), 0), total) if int(last) else range(0)
    if last and int(last) < int(first):
        return None
    return range(int(first), min(int(last) + 1, total) if last else total)


def _stream(request: HttpRequest, download: Download, start: int, stop: int) -> HttpResponseBase:
    if request.method == "HEAD":
        response: HttpResponseBase = HttpResponse(content_type=download.media_type)
    else:
        response = StreamingHttpResponse(_pieces(download, start, stop), content_type=download.media_type)
    response["Content-Length"] = str(stop - start)
    return response


def _pieces(download: Download, start: int, stop: int) -> Iterator[bytes]:
    """The bytes from `start` up to `stop`, at most `PIECE` at a time."""
    place = 0
    for segment in download.segments:
        low, high = max(start - place, 0), min(stop - place, segment.length)
        place += segment.length
        if low >= high:
            continue
        if segment.stored_as:
            with default_storage.open(segment.stored_as) as opened:
                yield from _read(opened, low, high)
        else:
            yield segment.data[low:high]


def _read(opened: IO[bytes], low: int, high: int) -> Iterator[bytes]:
    opened.seek(low)
    left = high - low
    while left > 0:
        piece = opened.read(min(PIECE, left))
        if not piece:
            raise OSError("a file of the export is shorter in storage than it was written")
        left -= len(piece)
        yield piece
