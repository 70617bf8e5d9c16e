import pytest

from curation.scenarios.gate.findings import findings_of
from sandbox.protocol import Fixture, Setup

SETUP = Setup(fixtures=[Fixture("/usr/local/bin/todo", b"#!/bin/sh\n", 0o755), Fixture("/srv/lib.sh", b"x=1\n")])


def found(checker: str, reference: str = "true") -> list[tuple[str, str]]:
    checks = [finding.check for finding in findings_of(checker, reference, SETUP)]
    return [(check.name, check.reason.partition(":")[0]) for check in checks]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('[ "$(date +%F)" = 2026-01-01 ]', "reads the clock"),
        ("if true; then test $SECONDS -lt 5; fi", "reads the clock"),
        ("find . -newermt yesterday", "reads the clock"),
        ("awk 'BEGIN { print systime() }'", "reads the clock"),
        ("case x in y) date ;; esac", "reads the clock"),
        ("timeout 5 env LC_ALL=C date +%s", "reads the clock"),
        ("sh -c 'date'", "reads the clock"),
        ("ls -t | head -n 1", "reads the clock"),
        ('[ "$(stat -c %y list)" = x ]', "reads the clock"),
        ('echo "${RANDOM}"', "reads random numbers"),
        ("sort -R list", "reads random numbers"),
        ("head -c 4 /dev/urandom", "reads random numbers"),
        ("find . -type f | head -n 1", "reads the order of a folder"),
        ("ls -U .", "reads the order of a folder"),
        ("curl -s http://host/", "reads the network"),
        ("pgrep server", "reads the process table"),
        ('kill -0 "$(cat pid)"', "reads the process table"),
        ("cat /proc/[0-9]*/cmdline", "reads the process table"),
        ('[ "$(uname -n)" = host ]', "reads the machine's name"),
        ("/usr/local/bin/todo list", "runs /usr/local/bin/todo, which the agent may write"),
        ("sh /usr/local/bin/todo", "runs /usr/local/bin/todo, which the agent may write"),
        (". /srv/lib.sh", "runs /srv/lib.sh, which the agent may write"),
        ("find . -exec /usr/local/bin/todo {} +", "runs /usr/local/bin/todo, which the agent may write"),
        ('PATH="$HOME/bin:$PATH"; todo', "runs programs of a folder that the agent may write"),
        ("export PATH=/bin:.", "runs programs of a folder that the agent may write"),
    ],
)
def test_a_checker_that_depends_on_more_than_the_state_is_named_with_its_line(line: str, what: str) -> None:
    assert (f"the checker {what}", "line 2 of the checker") in found(f"[ -f result ] || exit 1\n{line}\n")


@pytest.mark.parametrize(
    "checker",
    [
        "# the date of today does not matter\ngrep -q date list",
        "echo 'ps ax; curl; $RANDOM' | cmp -s - list",
        '[ "$(date -u -d @0 +%Y)" = 1970 ]',
        "find . -type f | sort | head -n 1",
        "[ -x /usr/local/bin/todo ] && grep -q x /usr/local/bin/todo",
        "cat > $TMPDIR/want <<'END'\ndate and $RANDOM\nEND\ncmp $TMPDIR/want list",
        "sort list | head -n 1",
        "[ \"$(stat -c '%a %s' list)\" = '600 7' ]",
        "last() { tail -n 1; }\ncat list | last",
        'case "$TERMINAL" in\nexit) ;;\ndate) exit 1 ;;\nesac',
        "find . -type f | xargs grep -q last",
        "grep -qx PATH=/usr/local/bin profile && PATH=/usr/bin:/bin cmp -s - profile < /srv/want",
    ],
)
def test_words_that_are_only_text_are_no_finding(checker: str) -> None:
    assert found(checker) == []


def test_work_left_to_the_background_is_named_with_the_references_line() -> None:
    name = "the reference leaves work to a background process"
    assert found("true", "todo\n(sleep 1; echo hi > out) &\nexit") == [(name, "line 2 of the reference")]
    assert found("true", "nohup build > log 2>&1") == [(name, "line 1 of the reference")]
    assert found("true", "build > log 2>&1 &\nwait") == []
    assert found("true", "true && build >&2") == []
