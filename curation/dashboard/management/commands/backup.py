"""`manage.py backup FILE`: one archive of the SQLite database, the files and the key, while Winnow runs."""

import os
import tarfile
import tempfile
from argparse import ArgumentParser
from pathlib import Path

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from curation.projects.models import Project


class Command(BaseCommand):
    help = "Write the database, the files and the key to a tar archive. To restore, unpack it in an empty data folder."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="The archive, such as winnow.tar; it must not exist.")

    def handle(self, *, file: Path, **options: object) -> None:
        if connection.vendor != "sqlite":
            raise CommandError("This backs up SQLite. Use pg_dump for PostgreSQL, as docs/operations.md describes.")
        if not settings.MEDIA_ROOT:
            raise CommandError(
                f"The files are in {settings.FILES_URL}. Back up that bucket and the database by itself."
            )
        if not Path(settings.DATABASES["default"]["NAME"]).exists():
            raise CommandError(f"There is no database in {settings.WINNOW_DATA}.")
        if file.exists():
            raise CommandError(f"{file} exists already.")
        if not os.access(file.resolve().parent, os.W_OK | os.X_OK):
            raise CommandError(f"{file.resolve().parent} is no folder that this user may write to.")
        Project.objects.exists()  # raises where there are no tables, which the command line explains
        # Made beside its place and renamed: an archive under its name is whole.
        with tempfile.TemporaryDirectory(prefix=f".{file.name}.", dir=file.resolve().parent) as folder:
            made = Path(folder) / "archive"
            write_archive(made, Path(folder) / "database")
            os.link(made, file)
        self.stderr.write(f"Wrote {file} ({file.stat().st_size:,} bytes).")


def write_archive(archive: Path, copy: Path) -> None:
    """Write the archive; `copy` is where the database is copied to. The database comes first.

    A file without its row does no harm, a row without its file does. A file that is deleted meanwhile is left out.
    """
    with connection.cursor() as cursor:
        cursor.execute("VACUUM INTO %s", [str(copy)])
    with tarfile.open(archive, "w") as tar:
        archive.chmod(0o600)  # it has the key
        tar.add(copy, "winnow.sqlite3")
        key = settings.WINNOW_DATA / "secret_key"
        if key.exists():
            tar.add(key, "secret_key")
        root = Path(settings.MEDIA_ROOT)
        for path in sorted(root.rglob("*")):
            try:
                tar.add(path, Path("files", path.relative_to(root)), recursive=False)
            except FileNotFoundError:
                continue
