"""Edits of the agent's files between two checks, without a program in the sandbox."""

from collections.abc import Sequence

import pytest

from sandbox.errors import SandboxFailed
from sandbox.protocol import Fixture, PathEdit
from tests.sandbox.conftest import Opener

FIXTURES = (Fixture("/srv/a.txt", b"first\n"), Fixture("/srv/in/b.txt", b"second\n", 0o400))


def file(path: str, text: bytes, mode: int = 0o644) -> PathEdit:
    return PathEdit(path, "file", mode, ((text, 1),), len(text))


@pytest.mark.parametrize(
    ("edits", "shown"),
    [
        ([PathEdit("/srv/a.txt")], "test ! -e /srv/a.txt && ls /srv/in/b.txt"),
        ([PathEdit("/srv/in")], "test ! -e /srv/in"),
        ([PathEdit("/srv/none/x")], "test ! -e /srv/none"),
        ([file("/srv/a.txt", b"other", 0o600)], "test $(cat a.txt) = other -a $(stat -c %a a.txt) = 600"),
        ([file("/srv/in/b.txt", b"other", 0o400)], "test $(cat in/b.txt) = other -a $(stat -c %a in/b.txt) = 400"),
        ([file("/srv/new/c", b"\0\xff\n")], "test $(od -An -tx1 new/c | tr -d ' ') = 00ff0a"),
        ([PathEdit("/srv/a.txt", "folder", 0o500), file("/srv/a.txt/x", b"in")], "test ! -w a.txt -a -s a.txt/x"),
        ([file("/srv/in", b"no folder")], "test -f in"),
        ([PathEdit("/srv/a.txt", "link", 0o777, ((b"in/b.txt", 1),), 8)], "test $(readlink a.txt) = in/b.txt"),
        ([PathEdit("/srv/x", "file", 0o644, ((b"ab", 2), (b"c", 3)), 6)], "test $(cat x) = ababcc"),
    ],
)
def test_a_path_is_made_as_named(opened: Opener, edits: Sequence[PathEdit], shown: str) -> None:
    session = opened(FIXTURES)
    assert session.check("true", terminal="").passed
    session.edit(edits)
    check = session.check(f"cd /srv; {shown}", terminal="")
    assert check.passed, check.output


def test_a_file_that_is_there_keeps_its_other_names(opened: Opener) -> None:
    session = opened(FIXTURES)
    session.exec("ln /srv/a.txt /srv/same.txt")
    session.check("true", terminal="")
    session.edit([file("/srv/a.txt", b"other\n"), file("/srv/a.txt", b"third\n")])
    assert session.check("test /srv/a.txt -ef /srv/same.txt; cat /srv/same.txt", terminal="").output == "third\n"


def test_an_edit_that_the_file_system_refuses_is_left_out(opened: Opener) -> None:
    session = opened(FIXTURES)
    session.check("true", terminal="")
    session.edit([file("/usr/bin/zq", b"no"), file("/proc/zq", b"no"), file("/srv/a.txt", b"yes")])
    assert session.check("cat /srv/a.txt; test ! -e /usr/bin/zq", terminal="").output == "yes"


def test_nothing_is_edited_while_the_agent_may_run(opened: Opener) -> None:
    with pytest.raises(SandboxFailed, match="before the first check"):
        opened(FIXTURES).edit([PathEdit("/srv/a.txt")])
