"""Uploads and exports in a folder: names are short enough, nothing half-written stays, and a missing file says where
it was looked for.
"""

import contextlib
import socket
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files import File
from django.core.files.storage import FileSystemStorage
from django.core.files.uploadhandler import TemporaryFileUploadHandler

from curation.web.failures import DiskFull, failure_of


class CleanFileSystemStorage(FileSystemStorage):
    """Django's storage, which would leave half a file behind when the disk is full. Raises `DiskFull`."""

    def _save(self, name: str, content: "File[bytes]") -> str:
        path, existed = Path(self.path(name)), self.exists(name)
        try:
            saved: str = super()._save(name, content)  # type: ignore[misc]  # a hook that the stubs leave out
            return saved
        except OSError as error:
            if not existed:
                path.unlink(missing_ok=True)
                with contextlib.suppress(OSError):  # other files are in it
                    path.parent.rmdir()
            failure = failure_of(error)
            if isinstance(failure, DiskFull):
                raise failure from error
            raise


def missing_file(key: str) -> str:
    """Return the advice about a file that the database names and this process does not find."""
    here = f"{settings.FILES_URL} on {socket.gethostname()}, where WINNOW_DATA is {settings.WINNOW_DATA}"
    return (
        f"The file {key} is not in {here}. It was deleted, or web and workers do not share their files: set FILES_URL, "
        "or WINNOW_DATA, to the same place for all of them."
    )


LONGEST_NAME = 100


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
