"""Uploads: the largest request, and file names that a folder can have."""

import contextlib
from typing import Any

from django.conf import settings
from django.core.files.uploadhandler import TemporaryFileUploadHandler
from django.http import HttpRequest, HttpResponse

from curation.web.http.middleware import Middleware, refused
from curation.web.problems import TooLarge

FORM_OVERHEAD = 1024 * 1024  # bytes of a form besides its file
LONGEST_NAME = 100


class UploadLimitMiddleware(Middleware):
    """Refuses uploads over the limit by their `Content-Length`, before anything is read."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        length = request.META.get("CONTENT_LENGTH") or "0"
        if not length.isdigit() or int(length) <= settings.MAX_UPLOAD_BYTES + FORM_OVERHEAD:
            return self.get_response(request)
        return refused(
            request,
            TooLarge(
                f"The upload has {int(length) // 1024 // 1024} MB; this server accepts "
                f"{settings.MAX_UPLOAD_BYTES // 1024 // 1024} MB (MAX_UPLOAD_MB). Compress it with gzip, or give a URL."
            ),
        )


class ShortNameUploadHandler(TemporaryFileUploadHandler):
    """Cuts a file name from its start: the temporary file has its extension, which may be longer than a file system
    allows. Deletes the temporary file at once if the disk is full."""

    def new_file(self, field_name: str, file_name: str, *args: Any, **kwargs: Any) -> None:
        super().new_file(field_name, file_name[-LONGEST_NAME:], *args, **kwargs)

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        try:
            super().receive_data_chunk(raw_data, start)
        except OSError:
            with contextlib.suppress(OSError):  # of the buffer
                self.file.close()
            raise
