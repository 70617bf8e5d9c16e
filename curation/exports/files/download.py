"""Downloads: any byte range of a file, or of the archive of all files, streamed from storage."""

import hashlib
import re
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from django.core.files.storage import default_storage
from django.http import HttpRequest, HttpResponse, HttpResponseNotModified, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header, parse_etags

from curation.exports.models import Export, ExportFile
from curation.web.files import missing_file
from curation.web.problems import NotFound, Unavailable

ARCHIVE = "archive.tar"
PIECE = 256 * 1024
_BLOCK = 512
_ONE_RANGE = re.compile(r"(\d*)-(\d*)")
# By the ending of a file's name.
MEDIA_TYPES = {
    ".jsonl": "application/x-ndjson",
    ".json": "application/json",
    ".gz": "application/gzip",
    ".parquet": "application/vnd.apache.parquet",
    ".yaml": "application/yaml",
    ".py": "text/x-python",
    ".md": "text/markdown; charset=utf-8",
    ".tar": "application/x-tar",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
OTHER_MEDIA_TYPE = "application/octet-stream"
# Without parameters.
KINDS = (*(kind.partition(";")[0] for kind in MEDIA_TYPES.values()), OTHER_MEDIA_TYPE)


@dataclass(frozen=True, slots=True)
class DownloadSegment:
    """Part of a download: some bytes (`data`) or a whole file in storage (`stored_as`), and its length."""

    length: int
    data: bytes = b""
    stored_as: str = ""


@dataclass(frozen=True, slots=True)
class Download:
    """A file to send. `etag` is its version; `sha256` is empty if it is not known beforehand."""

    name: str
    media_type: str
    etag: str
    segments: Sequence[DownloadSegment]
    sha256: str = ""

    @property
    def length(self) -> int:
        return sum(segment.length for segment in self.segments)


def download_of(export: Export, name: str) -> Download:
    """Return one file, or `archive.tar` with all of them. Raises `NotFound`, also while the export is not written."""
    if not export.ready:
        raise NotFound(f"Export {export.pk} is not written: its run is {export.run.state}.", code="not_ready")
    if name == ARCHIVE:
        return _archive(export)
    file = export.files.filter(name=name).first()
    if file is None:
        raise NotFound(f"Export {export.pk} has no file {name!r}.")
    if not default_storage.exists(file.stored_as):
        raise Unavailable(f"{missing_file(file.stored_as)} Or make the export again.", code="file_lost")
    segment = DownloadSegment(file.bytes, stored_as=file.stored_as)
    return Download(file.name, _media_type(file.name), file.sha256, [segment], sha256=file.sha256)


class DamagedFile(Exception):
    """A file in storage is missing or is not the one that was written."""


def copy_checked(file: ExportFile, path: Path) -> None:
    """Copy a file of an export from storage, which may be remote. Raises `DamagedFile`, and leaves no copy then."""
    digest = hashlib.sha256()
    try:
        with default_storage.open(file.stored_as) as stored, path.open("xb") as copy:
            while piece := stored.read(PIECE):
                digest.update(piece)
                copy.write(piece)
    except FileNotFoundError:
        raise DamagedFile(f"The file {file.name} is missing in storage. Make the export again.") from None
    if digest.hexdigest() != file.sha256:
        path.unlink()
        raise DamagedFile(f"The file {file.name} in storage is not the one that was written: its sha256 differs.")


def _archive(export: Export) -> Download:
    """Return all files as one. The archive is never stored: names and sizes determine its layout, so any range of it
    can be sent."""
    folder = f"{export.project.slug}-export-{export.pk}"
    segments: list[DownloadSegment] = []
    for file in export.files.all():
        entry = tarfile.TarInfo(f"{folder}/{file.name}")
        entry.size, entry.mode = file.bytes, 0o644
        header = entry.tobuf(tarfile.GNU_FORMAT)
        padding = b"\0" * (-file.bytes % _BLOCK)
        segments += [
            DownloadSegment(len(header), data=header),
            DownloadSegment(file.bytes, stored_as=file.stored_as),
            DownloadSegment(len(padding), data=padding),
        ]
    # Two empty blocks end an archive.
    segments.append(DownloadSegment(2 * _BLOCK, data=b"\0" * 2 * _BLOCK))
    return Download(f"{folder}.tar", _media_type(ARCHIVE), f"tar-{export.pk}-{export.manifest_sha256}", segments)


def respond(request: HttpRequest, download: Download) -> HttpResponseBase:
    """Answer 200, 206, 304 or 416 by RFC 9110. A request for several ranges gets the whole file."""
    etag, total = f'"{download.etag}"', download.length
    if _unchanged(request, etag):
        response: HttpResponseBase = HttpResponseNotModified()
    else:
        wanted = _range(request, etag, total)
        if wanted is None:
            response = _stream(download, 0, total)
        elif wanted.start >= wanted.stop:
            response = HttpResponse(status=416)
            response["Content-Range"] = f"bytes */{total}"
        else:
            response = _stream(download, wanted.start, wanted.stop)
            response.status_code = 206
            response["Content-Range"] = f"bytes {wanted.start}-{wanted.stop - 1}/{total}"
    response["ETag"] = etag
    response["Accept-Ranges"] = "bytes"
    response["Cache-Control"] = "private, no-transform"
    response["Content-Disposition"] = content_disposition_header(True, download.name) or "attachment"
    if download.sha256:
        response["X-Content-Sha256"] = download.sha256
    return response


def _media_type(name: str) -> str:
    return next((kind for ending, kind in MEDIA_TYPES.items() if name.endswith(ending)), OTHER_MEDIA_TYPE)


def _unchanged(request: HttpRequest, etag: str) -> bool:
    known = parse_etags(request.headers.get("If-None-Match", ""))
    return "*" in known or etag in [tag.removeprefix("W/") for tag in known]


def _range(request: HttpRequest, etag: str, total: int) -> range | None:
    """Return the requested range, an empty one if it lies outside the file, or None for the whole file.

    A header that cannot be parsed is ignored, and so is one whose `If-Range` names another version or a date.
    """
    header = request.headers.get("Range", "")
    unit, _, sets = header.partition("=")
    if unit.strip().lower() != "bytes":
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


def _stream(download: Download, start: int, stop: int) -> HttpResponseBase:
    response = StreamingHttpResponse(_pieces(download, start, stop), content_type=download.media_type)
    response["Content-Length"] = str(stop - start)
    return response


def _pieces(download: Download, start: int, stop: int) -> Iterator[bytes]:
    """Yield the bytes from `start` up to `stop`, at most `PIECE` at a time."""
    position = 0
    for segment in download.segments:
        low, high = max(start - position, 0), min(stop - position, segment.length)
        position += segment.length
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
            raise OSError("a file of the export is shorter in storage than when it was written")
        left -= len(piece)
        yield piece
