"""`archive.tar`: all files of an export as one. It is never stored: its layout follows from names and sizes alone."""

import tarfile

from curation.exports.files.download import Download, Segment, media_type
from curation.exports.models import Export

NAME = "archive.tar"
_BLOCK = 512


def archive(export: Export) -> Download:
    """The download; any range of it can be answered. Its bytes, like the files', depend on nothing but the content."""
    folder = f"{export.project.slug}-export-{export.pk}"
    segments: list[Segment] = []
    for file in export.files.all():
        entry = tarfile.TarInfo(f"{folder}/{file.name}")
        entry.size, entry.mode = file.bytes, 0o644
        header = entry.tobuf(tarfile.GNU_FORMAT)
        padding = b"\0" * (-file.bytes % _BLOCK)
        segments += [
            Segment(len(header), data=header),
            Segment(file.bytes, stored_as=file.stored_as),
            Segment(len(padding), data=padding),
        ]
    # Two empty blocks end an archive.
    segments.append(Segment(2 * _BLOCK, data=b"\0" * 2 * _BLOCK))
    return Download(f"{folder}.tar", media_type(NAME), f"tar-{export.pk}-{export.manifest_sha256}", segments)
