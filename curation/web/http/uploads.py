"""Uploads: file names that a folder can have."""

import contextlib
from typing import Any

from django.core.files.uploadhandler import TemporaryFileUploadHandler

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
