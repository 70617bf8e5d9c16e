"""Messages of the command line about errors outside of Winnow: one line, not a traceback."""

import os
import re
import signal
import socket
import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.urls import Resolver404, resolve
from pytest_django import Settings

from curation.projects.models import SCOPES_OF_ROLE, Project, Role
from curation.runs.models import Run
from curation.samples.models import SavedView
from tests.evaluations.evaluating import make_rows, make_split
from tests.exports.exporting import make_approved, run_export
from tests.factories import (
    make_duel,
    make_endpoint,
    make_member,
    make_project,
    make_prompt,
    make_run,
    make_scenario,
    make_trajectory,
    make_user,
)

ROOT = Path(__file__).resolve().parents[2]


def started(*words: str, folder: Path, **values: str) -> subprocess.CompletedProcess[str]:
    gone = ("DATABASE_URL", "CELERY_BROKER_URL", "DJANGO_SETTINGS_MODULE")
    kept = {key: value for key, value in os.environ.items() if key not in gone}
    environment = kept | {"WINNOW_DATA": str(folder / "data"), "PYTHONPATH": str(ROOT)} | values
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def winnow(folder: Path, *words: str, **values: str) -> subprocess.CompletedProcess[str]:
    return started("-m", "winnow", *words, folder=folder, **values)


@pytest.fixture
def namesakes(tmp_path: Path) -> None:
    """Packages in the current folder that have the names of ours and of what we import, and end who imports them."""
    ours = ("sandbox", "judging", "curation", "config", "manage")
    for name in (*ours, "django", "celery", "pydantic", "httpx", "argparse", "pathlib", "csv", "email", "json"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise SystemExit('executed: {name}')")


@pytest.mark.parametrize(
    ("words", "values", "said"),
    [
        (("token", "list"), {"PORT": "80a"}, "PORT is '80a'; it must be a whole number"),
        (("serve",), {"WINNOW_DATA": "/dev/null/data"}, "WINNOW_DATA is '/dev/null/data', which cannot be created"),
        pytest.param(("run", "duel", "--project", "demo"), {}, "no such table", marks=pytest.mark.slow),
        pytest.param(("worker",), {}, "`winnow serve` or `manage.py migrate` prepares it", marks=pytest.mark.slow),
        pytest.param(("backup", "winnow.tar"), {}, "There is no database in", marks=pytest.mark.slow),
        pytest.param(("docs", "/dev/null/docs"), {}, "/dev/null/docs", marks=pytest.mark.slow),
    ],
)
def test_what_a_person_can_mend_is_one_line(
    tmp_path: Path, namesakes: None, words: tuple[str, ...], values: dict[str, str], said: str
) -> None:
    done = winnow(tmp_path, *words, **values)
    assert done.returncode == 1 and said in done.stderr
    assert "Traceback" not in done.stderr and len(done.stderr.splitlines()) == 1


def test_help_names_the_command_as_it_was_called_and_nothing_in_the_current_folder_is_imported(
    tmp_path: Path, namesakes: None
) -> None:
    done = winnow(tmp_path, "manage", "check", "--help")
    assert done.stdout.startswith("usage: winnow manage check ") and "executed" not in done.stderr


@pytest.mark.parametrize("place", ["", ".", "{folder}/../{name}", "{folder}"])
def test_the_current_folder_is_left_from_the_path_of_all_processes(tmp_path: Path, namesakes: None, place: str) -> None:
    place = place.format(folder=tmp_path, name=tmp_path.name)
    command = (
        "def main():\n import subprocess, sys, json\n"
        " print(subprocess.run([sys.executable, '-c', 'import sys, json'], cwd='/').returncode)"
    )
    script = (
        "import runpy, sys, types; sys.modules['winnow.commands'] = commands = types.ModuleType('winnow.commands')\n"
        f"exec({command!r}, vars(commands)); runpy.run_module('winnow', run_name='__main__')"
    )
    done = started("-c", script, folder=tmp_path, PYTHONPATH=f"{place}{os.pathsep}{ROOT}")
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_a_traceback_can_be_asked_for(tmp_path: Path) -> None:
    done = winnow(tmp_path, "token", "list", "--traceback", PORT="80a")
    assert "Traceback" in done.stderr and "PORT is '80a'" in done.stderr


@pytest.mark.slow
def test_an_empty_database_is_not_backed_up(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/winnow.sqlite3").touch()
    done = winnow(tmp_path, "backup", "winnow.tar")
    assert done.returncode == 1 and "`winnow serve` or `manage.py migrate` prepares it" in done.stderr
    assert not (tmp_path / "winnow.tar").exists()


def test_serve_tries_the_port_before_it_makes_anything(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    with socket.create_server(("127.0.0.1", 0)) as other:
        settings.WINNOW_DATA, settings.BIND, settings.PORT = tmp_path, "127.0.0.1", other.getsockname()[1]
        with pytest.raises(CommandError, match=f"Port {settings.PORT} is in use. Start with PORT="):
            call_command("serve")
    assert {path.name for path in tmp_path.iterdir()} <= {"demo.lock"}


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL is backed up by its own programs")
@pytest.mark.django_db
def test_a_backup_to_a_folder_that_is_not_there_names_the_folder(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=f"{tmp_path}/missing is no folder that this user may write to"):
        call_command("backup", tmp_path / "missing/winnow.tar")


@pytest.mark.django_db
def test_an_export_to_a_folder_that_cannot_be_made_is_not_launched(tmp_path: Path) -> None:
    make_project("acme")
    (tmp_path / "file").touch()
    with pytest.raises((OSError, CommandError)):
        call_command("export", project="acme", recipe="weekly", to=tmp_path / "file/exported", user="")
    assert not Run.objects.exists()


pytestmark = pytest.mark.django_db(transaction=True)
MOST_PAGES = 400
LINK = re.compile(r"""<(?:a|button|div|tr|form|section|details|summary)\b[^>]*?\s(?:href|hx-get)="([^"]*)\"""")
POST = re.compile(r"""<form\b[^>]*\bmethod="post"[^>]*\baction="([^"]*)\"""")
ENDED: dict[str, Any] = {"state": "succeeded", "items_total": 1, "items_done": 1}


def filled() -> Project:
    project = make_project("acme")
    make_endpoint(project, "king-a")
    make_prompt(project)
    make_approved(project)
    scenario = make_scenario(project, status="draft")
    make_trajectory(project, scenario)
    split = make_split(project, make_rows(2))
    export = run_export(project, {"formats": ["sft-messages"]})
    for kind, params, result in (
        ("king", {"model": "king-a"}, {}),
        ("gate", {}, {"admitted": 1, "rejected": 0}),
        ("pairs", {}, {"pairs": 1, "there_already": 0, "left_out": {}}),
        ("split", {"export": str(export.pk)}, {"split": str(split.pk), "rows": 2}),
        ("contamination", {"split": str(split.pk)}, {"rows": 2}),
    ):
        make_run(project, kind=kind, params=params, result=result, **ENDED)
    made = {"kept": 1, "trajectories": 1}
    rollout = make_run(project, kind="rollout", params={"model": "king-a"}, result=made, **ENDED | {"items_failed": 1})
    make_trajectory(project, scenario, run=rollout, sample_index=1, sample={"status": "approved"})
    make_duel(project, bucket="final", status="approved")
    author = make_user()
    for of, query in (("samples", "bucket=final"), ("samples", "sort=priority"), ("scenarios", "sort=kept_rate")):
        SavedView.objects.create(project=project, list=of, name=query, query=query, created_by=author)
    return project


def signature(url: str) -> tuple[object, ...]:
    path, _, query = url.partition("?")
    found = resolve(path)
    kind = re.search(r"(?:^|&)kind=([^&]*)", query)
    # Of a list each kind of filter and order once.
    fields = tuple(sorted(set(re.findall(r"(?:^|&)(\w+)=[^&]", query)) & {"bucket", "flags", "sort", "solved_by"}))
    return found.url_name, found.kwargs.get("pk") if found.url_name == "run-page" else "", kind and kind[1], fields


def refused(client: Client, project: Project, role: str) -> set[str]:
    """Crawl the project's pages; return the addresses that were offered and are not open to the role."""
    here = f"/p/{project.slug}/"
    waiting = [here]
    seen: set[tuple[object, ...]] = set()
    found: set[str] = set()
    while waiting and len(seen) < MOST_PAGES:
        url = waiting.pop(0)
        try:
            mark = signature(url)
        except Resolver404:
            continue
        if mark in seen:
            continue
        seen.add(mark)
        answer = client.get(url)
        if answer.status_code == 403:
            found.add(url)
        if answer.status_code != 200 or answer.streaming or not answer["Content-Type"].startswith("text/html"):
            continue
        page = answer.content.decode()
        for action in POST.findall(page):
            scope = getattr(resolve(unescape(action).partition("?")[0]).func, "scope", "")
            if action.startswith(here) and scope and scope not in SCOPES_OF_ROLE[role]:
                found.add(f"POST {action} on {url}")
        links = (unescape(link).partition("#")[0] for link in LINK.findall(page))
        waiting += [link for link in links if link.startswith(here)]
    assert len(seen) > 30
    return found


@pytest.mark.parametrize(
    ("role", "empty"),
    [
        pytest.param(Role.VIEWER, False, id="a viewer, filled"),
        pytest.param(Role.REVIEWER, True, id="a reviewer, empty"),
        pytest.param(Role.VIEWER, True, id="a viewer, empty", marks=pytest.mark.slow),
        pytest.param(Role.REVIEWER, False, id="a reviewer, filled", marks=pytest.mark.slow),
    ],
)
def test_nothing_that_is_offered_is_refused(client: Client, role: str, empty: bool) -> None:
    project = make_project("acme") if empty else filled()
    client.force_login(make_member(project, role=role))
    assert refused(client, project, role) == set()


def test_the_menu_offers_a_new_project_to_those_who_may_create_one(client: Client, settings: Settings) -> None:
    project = make_project("acme")
    client.force_login(make_member(project, make_user(is_staff=True)))
    for creators, offered in ((["staff"], True), ([], False), (["everyone"], True)):
        settings.PROJECT_CREATORS = creators
        assert ("New project" in client.get("/p/acme/").content.decode()) is offered
