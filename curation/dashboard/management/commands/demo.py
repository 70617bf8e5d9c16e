"""`manage.py demo`: Winnow with a sample project, without other services, on loopback only."""

import os
import shutil
from argparse import ArgumentParser
from pathlib import Path
from typing import TextIO

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from curation.dashboard.demo.builder import DemoFailed
from curation.dashboard.demo.children import run_in_process
from curation.dashboard.demo.project import (
    PASSWORD,
    SLUG,
    USERNAME,
    begin_demo_project,
    launch_own_model,
    make_demo_project,
    remove_demo_project,
)
from curation.dashboard.demo.supervisor import (
    StartFailed,
    become_supervisor,
    demo_command,
    lock_data_folder,
    require_port,
)
from curation.dashboard.system.health import UNFINISHED
from curation.dashboard.system.static_files import collect_static_files
from curation.projects.models import Project
from curation.runs.models import Run

DATA_FILES = ("winnow.sqlite3", "winnow.sqlite3-wal", "winnow.sqlite3-shm", "broker", "files", "celerybeat-schedule")


class Command(BaseCommand):
    help = "Makes the project `demo` with scripted models, then runs web and worker until Ctrl+C."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--reset", action="store_true", help="Remove the demo's data first.")
        parser.add_argument("--prepare-only", action="store_true", help="Make the project, but start nothing.")

    def handle(self, *, reset: bool, prepare_only: bool, **options: object) -> None:
        if not settings.LOOPBACK_ONLY:
            raise CommandError(f"The demo's password is public, so it is not served on BIND={settings.BIND}.")
        with self._lock() as lock:
            if prepare_only:
                self._prepare(reset=reset)
                self._make(runs_here=True)
                return
            self._require_port()
            run_in_process(lambda: self._prepare(reset=reset))
            mark = settings.WINNOW_DATA / "demo.unfinished"
            mark.write_text("The sample project is being made: see its runs.", encoding="utf-8")
            os.environ[UNFINISHED] = str(mark)
            greeting = f"  Winnow answers    {_address()}   Sign in: {USERNAME} / {PASSWORD}"
            data, logs = settings.WINNOW_DATA, settings.WINNOW_DATA / "logs"
            become_supervisor(
                data, settings.BIND, settings.PORT, lock, greeting=greeting, logs=logs, beside=self._make_in_background
            )

    def _prepare(self, *, reset: bool) -> None:
        if reset:
            self._reset()
        self._print("Preparing the database")
        call_command("migrate", verbosity=0)
        collect_static_files()
        begin_demo_project()

    def _make(self, *, runs_here: bool) -> Project:
        self._print("Making the project `demo` with scripted models, which run on this machine")
        try:
            return make_demo_project(self._print, runs_here=runs_here)
        except DemoFailed as error:
            raise CommandError(str(error)) from None

    def _make_in_background(self) -> None:
        """Make the project while the site answers; its workers do the runs."""
        mark = Path(os.environ[UNFINISHED])
        try:
            project = self._make(runs_here=False)
        except CommandError as failed:
            mark.write_text(str(failed), encoding="utf-8")
            self.stderr.write(f"The project `{SLUG}` is incomplete. {failed}")
            return
        model = os.environ.get("WINNOW_DEMO_MODEL", "")
        run = launch_own_model(project, model) if model else None
        mark.unlink()
        self._print(_greeting(project, model, run))

    def _require_port(self) -> None:
        try:
            require_port(settings.BIND, settings.PORT)
        except StartFailed as error:
            raise CommandError(str(error)) from None

    def _print(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()

    def _lock(self) -> TextIO:
        try:
            return lock_data_folder(settings.WINNOW_DATA)
        except StartFailed as error:
            raise CommandError(str(error)) from None

    def _reset(self) -> None:
        connections.close_all()
        if settings.DATABASES["default"]["ENGINE"].endswith("sqlite3"):
            for name in DATA_FILES:
                path = settings.WINNOW_DATA / name
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
            for folder in ("messages", "processed", "control"):
                (settings.WINNOW_DATA / "broker" / folder).mkdir(parents=True, exist_ok=True)
        else:
            call_command("migrate", verbosity=0)
            remove_demo_project()
        self._print("Removed the demo's data")


def _greeting(project: Project, model: str, run: Run | None) -> str:
    """Return the text for a complete project. `run` lets a `model` of the user's own answer the demo's turns."""
    address = _address()
    models = f"  Models            scripted, offline. Use your own with: {demo_command('WINNOW_DEMO_MODEL=…')}"
    if run is not None:
        models = f"  {model} answers and judges the demo's turns: {address}/p/{project.slug}/runs/{run.pk}/"
    lines = (
        f"\n  Winnow is ready   {address}",
        f"  Sign in           {USERNAME} / {PASSWORD}",
        models,
        f"  REST              {address}/api/v1/docs",
        f"  Logs              {settings.WINNOW_DATA / 'logs'}",
        "  Stop              Ctrl+C\n",
    )
    return "\n".join(lines)


def _address() -> str:
    return f"http://127.0.0.1:{settings.PORT}"
