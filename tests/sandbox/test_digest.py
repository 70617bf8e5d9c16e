"""The digest of a sandbox's state: equal for equal states, by any way to them."""

from sandbox.gate.state import state_digest
from sandbox.protocol import Fixture
from tests.sandbox.conftest import Opener

TODO = Fixture("/usr/local/bin/todo", b"#!/bin/sh\necho asked\n", 0o755)


def test_a_look_around_changes_nothing_and_work_does(opened: Opener) -> None:
    session = opened([TODO])
    states = [state_digest(session).sha256]
    for command in (
        "ls -la; cat /usr/local/bin/todo; todo",
        "cd /tmp",
        "export A=1",
        "echo 1 > /srv/x",
        "chmod 600 /srv/x",
    ):
        session.exec(command)
        states.append(state_digest(session).sha256)
    assert states[0] == states[1]
    assert len(set(states[1:])) == 5
    session.exec("rm /srv/x; unset A; cd")
    assert state_digest(session).sha256 == states[0]


def test_two_sandboxes_in_the_same_state_have_the_same_digest(opened: Opener) -> None:
    one, other = opened([TODO]), opened([TODO])
    one.exec("echo b > /srv/b; echo a > /srv/a")
    other.exec("echo a > /srv/a")
    other.exec("todo; echo b > /srv/b")
    assert state_digest(one).sha256 == state_digest(other).sha256
    other.exec("sleep 60 &")
    assert state_digest(one).sha256 != state_digest(other).sha256


def test_the_digest_tells_which_programs_ran_before_it(opened: Opener) -> None:
    session = opened([TODO])
    before = state_digest(session)
    session.exec("todo now")
    after = state_digest(session)
    runs = session.check("exit 0", terminal="exit").runs
    if runs is not None:
        assert [(run.arguments, before.pid < run.pid < after.pid) for run in runs] == [(("now",), True)]


def test_what_an_agent_defines_does_not_disturb_the_digest(opened: Opener) -> None:
    session = opened()
    session.exec("export PATH=/nowhere; set -e; printf() { echo no; }; exec 2>&1")
    first = state_digest(session)
    session.exec("/bin/true")
    assert state_digest(session).sha256 == first.sha256
