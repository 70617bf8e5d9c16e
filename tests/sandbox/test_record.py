"""The record of the scenario's programs that were executed, which no agent can write."""

from pathlib import Path

import pytest

from sandbox import session
from sandbox.errors import SandboxFailed
from sandbox.protocol import CheckResult, Fixture, SandboxBackend, Setup
from tests.sandbox.conftest import Opener, found

TODO = b'#!/bin/sh\n[ "$1" = --help ] && { echo usage; exit 0; }\necho asked >> /var/asked\ncat /srv/todo.txt\n'
PATH = "/usr/local/bin/todo"
FIXTURES = (
    Fixture(PATH, TODO, 0o755),
    Fixture("/srv/todo.txt", b"nothing today\n"),
    Fixture("/opt/count", b'#!/usr/bin/perl\nprint "@ARGV\\n";\n', 0o755),
    Fixture("/opt/list", b"#!/usr/bin/awk -f\nBEGIN { print ARGC }\n", 0o755),
    Fixture("/opt/found", b"#!/usr/bin/env perl\nprint 1;\n", 0o755),
    Fixture("/opt/tasks", b"#!/usr/bin/make -f\nnext:\n\t@cat /srv/todo.txt\n", 0o755),
    Fixture("/opt/plain", b"echo plain\n", 0o755),
    Fixture("/var/in/late.txt", b"late\n"),
)
# A process that calls itself by other words, as the kernel would show them.
RENAMED = r"""perl -e '$0 = "/bin/sh\0%s\0next\0"; syscall(218, 0); syscall(96, 0)'"""


def checked(opened: Opener, *commands: str, checker: str = "asked") -> CheckResult:
    session = opened(FIXTURES)
    for command in commands:
        session.exec(command)
    return session.check(checker, terminal="exit")


@pytest.mark.parametrize(
    ("command", "run"),
    [
        ("todo next 'a  b'", (PATH, "next", "a  b")),
        (f"cd {PATH.rsplit('/', 1)[0]} && ./todo x", (PATH, "x")),
        ("sh -eu /usr/local/bin/todo x", (PATH, "x")),
        ("echo a b | xargs env todo", (PATH, "a", "b")),
        ("cp /usr/local/bin/todo copy && ./copy x", (PATH, "x")),
        (f"ln -s {PATH} linked && ./linked x", (PATH, "x")),
        ('todo "x\n/usr/local/bin/todo y"', (PATH, "x\n/usr/local/bin/todo y")),
        ("/opt/count 1", ("/opt/count", "1")),
        ("/opt/list q", ("/opt/list", "q")),
        ("awk -f /opt/list q", ("/opt/list", "q")),
        ("/opt/found w", ("/opt/found", "w")),
        ("/opt/tasks -s next", ("/opt/tasks", "-s", "next")),
        ("MAKEFLAGS=k /opt/tasks next", ("/opt/tasks", "next")),
        ("/opt/plain z", ("/opt/plain", "z")),
    ],
)
def test_a_program_that_was_executed_is_recorded(opened: Opener, command: str, run: tuple[str, ...]) -> None:
    check = checked(opened, command)
    assert [(found.path, *found.arguments) for found in check.runs or ()] == [run]
    assert check.passed


@pytest.mark.parametrize(
    "command",
    [
        "echo asked >> /var/asked; echo 'todo next' > /tmp/record",
        f"cat {PATH}; . {PATH}; sh < {PATH}",
        f"sh -n {PATH} next; sh -c true {PATH} next; sh -o noexec {PATH} next",
        f'cp {PATH} copy; echo "#" >> copy; ./copy next',
        f"echo 'exit 0' > {PATH}; todo next",
        f'perl -e \'exec {{"/bin/true"}} "/bin/sh", "{PATH}", "next"\'',
        RENAMED % PATH,
        RENAMED.replace("/bin/sh", "/usr/bin/perl") % "/opt/count",
        "awk '{}' /opt/list; perl -e 1 /opt/count",
        f"LD_PRELOAD=/nowhere.so todo next; BASH_ENV=/nowhere sh {PATH} next",
        f"env 'BASH_FUNC_cat%%=() {{ :; }}' {PATH} next; MAKEFLAGS=n /opt/tasks next",
        "MAKEFILES=/nowhere /opt/tasks next; GNUMAKEFLAGS=--dry-run /opt/tasks next",
        "cp /bin/dash sh; ./sh /usr/local/bin/todo next",
    ],
)
def test_what_only_looks_like_a_run_is_not_recorded(opened: Opener, command: str) -> None:
    check = checked(opened, command)
    assert check.runs == ()
    assert not check.passed


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("asked todo", True),
        (f"asked {PATH} show", True),
        ("asked todo show 1", True),
        ("asked -x todo show 1", True),
        ("asked todo sho", False),
        ("asked todo 1", False),
        ("asked -x todo show", False),
        ("asked -x todo", False),
        ("asked odo", False),
        ("asked todo show 1 2", False),
    ],
)
def test_a_checker_asks_for_a_run_by_its_program_and_arguments(opened: Opener, question: str, answer: bool) -> None:
    assert checked(opened, "todo show 1 > /dev/null", checker=question).passed is answer


@pytest.mark.parametrize("question", ["asked todo", "! asked todo", "asked > /dev/null | cat; true"])
def test_without_a_record_a_checker_that_asks_gives_no_verdict(
    backend: SandboxBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    text = session.supervisor_text().replace("$listener = listen_for_programs();", "$listener = undef;")
    monkeypatch.setattr(session, "supervisor_text", lambda: text)
    fresh = found(backend.name, tmp_path)
    with (
        fresh.session(Setup(fixtures=FIXTURES)) as opened,
        pytest.raises(SandboxFailed, match="this machine lets nobody record which programs run"),
    ):
        checked(lambda _: opened, "todo next", checker=question)


def test_programs_of_the_checker_are_no_runs(opened: Opener) -> None:
    assert checked(opened, "true", checker="/usr/local/bin/todo > /dev/null; ! asked todo").passed


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("rm /srv/todo.txt", "/srv/todo.txt is gone\n"),
        ("rm /srv/todo.txt; ln -s /opt/plain /srv/todo.txt", "/srv/todo.txt is no file\n"),
        ("chmod 600 /opt/plain", "/opt/plain has another mode\n"),
        ("sed -i s/today/ever/ /srv/*", "/srv/todo.txt has other content\n"),
        ("mv /var/in ~/in; ln -s ~/in /var/in", "/var/in/late.txt is behind the link /var/in\n"),
        ("touch /srv/todo.txt; echo new > /srv/new.txt", ""),
    ],
)
def test_a_checker_learns_which_fixtures_were_changed(opened: Opener, command: str, output: str) -> None:
    check = checked(opened, command, checker="unchanged")
    assert (check.output, check.passed) == (output, not output)


def test_changes_outside_some_paths_count(opened: Opener) -> None:
    changed = "rm /srv/todo.txt /opt/count; chmod 600 /opt/plain"
    assert checked(opened, changed, checker="unchanged --except /srv /opt/count --except /opt/plain").passed
    assert not checked(opened, changed, checker="unchanged --except /srv /opt/co").passed


def test_a_storm_of_programs_leaves_the_session_usable(opened: Opener) -> None:
    session = opened(FIXTURES)
    session.exec("for i in 1 2 3 4; do for j in $(seq 50); do todo --help & done > /dev/null; wait; done")
    assert session.exec("echo alive").output == "alive\n"
    assert len(session.check("asked todo --help", terminal="exit").runs or ()) == 200
