"""Style sheets and scripts: names with a hash of their content, which browsers keep, and gzip copies."""

from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.apps import StaticFilesConfig
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from whitenoise.storage import CompressedManifestStaticFilesStorage


class WinnowStaticFiles(StaticFilesConfig):
    # Packages bring more than the pages use.
    ignore_patterns = [*StaticFilesConfig.ignore_patterns, "datasets", "templates", "widgetbundle.js", "redoc*"]


class HashedFiles(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # WhiteNoise ships no types
    """The collected files. Before they are collected, as in tests, names are those of the source folders."""

    def url(self, name: str, force: bool = False) -> str:
        if not self.hashed_files:
            return f"{self.base_url}{name}"
        return str(super().url(name, force))


def collect_static_files() -> None:
    """Collect the files, unless none is newer than the last collection. Takes a second."""
    manifest = Path(settings.STATIC_ROOT, HashedFiles.manifest_name)
    changed = (
        Path(storage.path(name)).stat().st_mtime
        for finder in get_finders()
        for name, storage in finder.list(WinnowStaticFiles.ignore_patterns)
    )
    if not manifest.exists() or max(changed) > manifest.stat().st_mtime:
        call_command("collectstatic", interactive=False, verbosity=0)
