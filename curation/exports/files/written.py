"""The files of a written export, by name."""

from django.core.files.storage import default_storage

from curation.exports.files.archive import NAME, archive
from curation.exports.files.download import Download, Segment, media_type
from curation.exports.models import Export
from curation.web.problems import NotFound, Unavailable


def download_of(export: Export, name: str) -> Download:
    """One file, or `archive.tar` with all of them. Raises `NotFound`, also while the export is not written."""
    if not export.ready:
        raise NotFound(f"Export {export.pk} is not written: its run is {export.run.state}.", code="not_ready")
    if name == NAME:
        return archive(export)
    file = export.files.filter(name=name).first()
    if file is None:
        raise NotFound(f"Export {export.pk} has no file {name!r}.")
    if not default_storage.exists(file.stored_as):
        raise Unavailable(f"{name} is no longer in storage; make the export again.", code="file_lost")
    segment = Segment(file.bytes, stored_as=file.stored_as)
    return Download(file.name, media_type(file.name), file.sha256, [segment], sha256=file.sha256)
