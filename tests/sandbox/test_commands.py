"""A command's result and the state that carries over to the next one, on every backend."""

import shlex
import time

import pytest

from sandbox.errors import SandboxFailed, SetupRefused
from sandbox.protocol import Fixture, SandboxSession, SessionLimits
from tests.sandbox.conftest import Opener


def said(session: SandboxSession, command: str) -> str:
    return session.exec(command).output


class TestState:
    def test_the_first_command_begins_in_the_home_with_the_agents_environment(self, opened: Opener) -> None:
        session = opened(env={"NOTICE": "read /srv/notice"})
        assert session.cwd() == "/home/agent"
        told = dict(line.split("=", 1) for line in said(session, "env").splitlines())
        assert told == {
            "HOME": "/home/agent",
            "LANG": "C.UTF-8",
            "LOGNAME": "agent",
            "NOTICE": "read /srv/notice",
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
            "PWD": "/home/agent",
            "SHELL": "/bin/sh",
            "USER": "agent",
        }
        assert said(session, "id -un; id -u; hostname; echo ~") == "agent\n1000\nhost\n/home/agent\n"

    def test_every_session_lists_its_variables_alike(self, opened: Opener) -> None:
        listed = set()
        for _ in range(8):
            session = opened()
            session.exec("cd /tmp; cd")
            listed.add(said(session, "env"))
        assert len(listed) == 1

    def test_the_folder_and_the_way_back_carry_over(self, session: SandboxSession) -> None:
        assert said(session, "cd /tmp && cd /srv") == ""
        assert session.cwd() == "/srv"
        assert said(session, "pwd; cd -; pwd") == "/srv\n/tmp\n/tmp\n"
        assert session.cwd() == "/tmp"  # noqa: S108

    def test_a_folder_behind_a_link_keeps_its_name(self, session: SandboxSession) -> None:
        session.exec("mkdir -p /srv/real; ln -s /srv/real ~/link; cd ~/link")
        assert session.cwd() == "/home/agent/link"
        assert said(session, "pwd; pwd -P") == "/home/agent/link\n/srv/real\n"

    @pytest.mark.parametrize(
        "value",
        [
            *("plain", "it's", 'a "b" c', "a\nb\n", "$HOME `id` \\n \\", "ünï→✓", "'; exit 9; '", "\x01\x7f\t"),
            *("", "é'\n\"'"),
        ],
    )
    def test_exported_variables_carry_over_unchanged(self, session: SandboxSession, value: str) -> None:
        quoted = "'" + value.replace("'", "'\\''") + "'"
        assert session.exec(f"export KEPT={quoted}; LOST=1; export -p >/dev/null").exit_code == 0
        assert said(session, 'printf "%s|%s" "$KEPT" "$LOST"') == f"{value}|"

    def test_an_unset_variable_stays_unset(self, opened: Opener) -> None:
        session = opened(env={"NOTICE": "x"})
        session.exec("unset NOTICE LANG")
        assert said(session, 'echo "${NOTICE-none} ${LANG-none}"') == "none none\n"

    def test_path_is_the_agents_to_change(self, session: SandboxSession) -> None:
        session.exec("mkdir bin; printf '#!/bin/sh\\necho mine\\n' > bin/tool; chmod +x bin/tool; PATH=$HOME/bin:$PATH")
        assert said(session, "tool") == "mine\n"

    def test_after_its_folder_is_removed_the_next_command_starts_in_the_home(self, session: SandboxSession) -> None:
        session.exec("mkdir /tmp/gone; cd /tmp/gone; rmdir /tmp/gone")
        assert said(session, "pwd; ls -a | head -1") == "/home/agent\n.\n"
        assert session.cwd() == "/home/agent"
        session.exec("mkdir /tmp/x; cd /tmp/x; chmod 0 /tmp/x")
        assert session.exec("pwd").output == "/home/agent\n"

    def test_without_a_home_it_starts_in_the_root(self, session: SandboxSession) -> None:
        session.exec("mkdir d; cd d; rmdir ~/d; chmod 0 ~")
        assert said(session, "pwd") == "/\n"

    def test_options_functions_and_plain_variables_end_with_their_command(self, session: SandboxSession) -> None:
        session.exec("set -eu; f() { echo f; }; x=1")
        assert session.exec('false; echo "${x-}"; f').output == "\nsh: 1: f: not found\n"

    def test_too_large_a_state_keeps_the_earlier_one(self, session: SandboxSession) -> None:
        session.exec("cd /srv; export SMALL=1")
        session.exec("cd /tmp; export LARGE=$(head -c 1000000 /dev/zero | tr '\\0' x)")
        assert said(session, 'pwd; echo "$SMALL ${LARGE-none}"') == "/srv\n1 none\n"


class TestEnding:
    @pytest.mark.parametrize(
        ("command", "code"),
        [("true", 0), ("false", 1), ("(exit 42)", 42), ("nothing-of-that-name", 127), ("/etc/passwd", 126)],
    )
    def test_the_exit_code_is_the_shells(self, session: SandboxSession, command: str, code: int) -> None:
        result = session.exec(command)
        assert (result.exit_code, result.left, result.timed_out) == (code, False, False)

    def test_messages_are_those_of_a_plain_shell(self, session: SandboxSession) -> None:
        assert said(session, "echo a\nfoo --bar\ncd /nowhere") == (
            "a\nsh: 2: foo: not found\nsh: 3: cd: can't cd to /nowhere\n"
        )

    def test_several_lines_here_documents_and_functions(self, session: SandboxSession) -> None:
        greet = "greet() {\n  local who=$1\n  cat <<EOF\nhello $who $((1<<2))\nEOF\n}\n"
        assert said(session, f"{greet}for name in a b; do greet $name; done") == "hello a 4\nhello b 4\n"
        assert said(session, "cat <<'END' | tr a-z A-Z\nit's $HOME\nEND") == "IT'S $HOME\n"
        assert said(session, "cat <<-X\n\ttabbed\n\tX\necho after") == "tabbed\nafter\n"

    @pytest.mark.parametrize(
        ("command", "word"),
        [
            ("echo 'abc", "Unterminated"),
            ('echo "abc', "Unterminated"),
            ("echo a &&", "end of file"),
            ("fi", "unexpected"),
        ],
    )
    def test_a_broken_command_is_a_turn(self, session: SandboxSession, command: str, word: str) -> None:
        result = session.exec(command)
        assert (result.exit_code, result.left) == (2, True)
        assert "Syntax error" in result.output and word in result.output
        assert said(session, "echo still here") == "still here\n"

    @pytest.mark.parametrize(
        "command", ["cat <<EOF\nno end", "echo no end \\", "cat <<A <<B\na\nA\nno end", "echo no end #"]
    )
    def test_a_command_with_an_open_end_still_reports_its_state(self, session: SandboxSession, command: str) -> None:
        output = said(session, command)
        assert "no end" in output and "export" not in output
        assert said(session, "echo fine") == "fine\n"

    def test_leaving_in_the_middle(self, session: SandboxSession) -> None:
        result = session.exec("cd /srv; export A=1; exit 3; echo never")
        assert (result.output, result.exit_code, result.left) == ("", 3, True)
        assert (session.cwd(), said(session, "echo $A")) == ("/srv", "1\n")

    def test_set_e_leaves_at_the_first_failure(self, session: SandboxSession) -> None:
        result = session.exec("set -e\ncd /srv\nfalse\necho never")
        assert (result.output, result.exit_code, result.left) == ("", 1, True)
        kept = session.exec("set -e; cd /opt; true")
        assert (kept.exit_code, kept.left, session.cwd()) == (0, False, "/opt")

    @pytest.mark.parametrize(("command", "code"), [("cd /srv; exec false", 1), ("cd /srv; kill -9 $$", 137)])
    def test_a_command_that_reports_no_state_keeps_the_earlier_one(
        self, session: SandboxSession, command: str, code: int
    ) -> None:
        session.exec("cd /opt")
        result = session.exec(command)
        assert (result.exit_code, result.left, session.cwd()) == (code, True, "/opt")

    def test_an_agents_own_traps(self, session: SandboxSession) -> None:
        result = session.exec("trap 'echo bye $?' EXIT; cd /opt; (exit 4)")
        assert (result.output, result.exit_code, result.left, session.cwd()) == ("bye 4\n", 4, False, "/opt")
        assert session.exec("trap 'exit 7' EXIT; true").exit_code == 7
        assert session.exec("trap 'echo caught' TERM; kill $$; echo on").output == "caught\non\n"
        assert session.exec("trap '' INT; sh -c 'kill -INT $$; echo deaf'").output == "deaf\n"

    def test_tracing_shows_the_agents_lines_alone(self, session: SandboxSession) -> None:
        assert said(session, "set -x; cd /srv; echo a") == "+ cd /srv\n+ echo a\na\n"
        assert session.exec("set -a; x=5; set -fC").exit_code == 0
        assert said(session, "echo $x; : > f; : > f; echo f*") == "5\nf\n"

    def test_stdin_is_empty(self, session: SandboxSession) -> None:
        assert said(session, "cat; read line; echo $?; wc -c") == "1\n0\n"


class TestOutput:
    def test_both_streams_as_they_come(self, session: SandboxSession) -> None:
        assert said(session, "echo 1; echo 2 >&2; echo 3") == "1\n2\n3\n"

    def test_unicode_and_invalid_bytes(self, session: SandboxSession) -> None:
        assert said(session, "echo 'grüße 世界 🙂'") == "grüße 世界 🙂\n"
        assert said(session, r"printf '\377\376ab\000c\303'") == "��abc�"
        assert said(session, r"printf '\033[31mred\007'") == "\x1b[31mred\x07"

    def test_long_output_keeps_its_two_ends(self, opened: Opener) -> None:
        session = opened(limits=SessionLimits(output=1000))
        assert not session.exec("head -c 1000 /dev/zero | tr '\\0' x").truncated
        result = session.exec("echo first; seq 100000; echo last")
        assert result.truncated and result.output.startswith("first\n1\n2\n") and result.output.endswith("\nlast\n")
        assert "bytes left out" in result.output and len(result.output) < 1100

    def test_a_cut_splits_no_character(self, opened: Opener) -> None:
        session = opened(limits=SessionLimits(output=1001))
        result = session.exec("yes é | head -20000 | tr -d '\\n'")
        assert result.truncated and "�" not in result.output

    def test_fifty_megabytes_are_read_and_cut(self, session: SandboxSession) -> None:
        result = session.exec("head -c 50000000 /dev/zero | tr '\\0' x; echo; echo end")
        assert result.truncated and result.exit_code == 0 and result.output.endswith("x\nend\n")
        assert len(result.output) < 66_000
        assert result.duration < 15

    def test_background_processes_hold_nothing_up(self, session: SandboxSession) -> None:
        result = session.exec("sleep 30 & echo $!")
        assert result.output.strip().isdigit() and result.duration < 5
        assert said(session, f"kill -0 {result.output.strip()} && echo there") == "there\n"
        session.exec("(sleep 0.2; echo late) & cd /srv")
        assert said(session, "sleep 1; echo now") == "late\nnow\n"

    def test_a_background_flood_blocks_nothing(self, session: SandboxSession) -> None:
        session.exec("yes >/dev/null & yes & sleep 0.1")
        result = session.exec("cd /srv; echo done")
        assert result.exit_code == 0 and session.cwd() == "/srv"
        session.exec("kill -9 -1")
        session.exec("true")
        assert said(session, "echo quiet") == "quiet\n"


HOSTILE_COMMANDS = {
    "comments": f"{'|#' * 50_000}\n:",
    "comment with spaces": f": |#{' ' * 100_000}\n:",
    "parentheses": "( " * 50_000,
    "here documents": f"{'<<a ' * 20_000}\n{'b' * 20_000}\na\n",
}


class TestHostileText:
    """The supervisor reads commands and states in linear time; a quadratic regex takes minutes here."""

    @pytest.mark.parametrize("command", HOSTILE_COMMANDS.values(), ids=HOSTILE_COMMANDS)
    def test_a_command(self, session: SandboxSession, command: str) -> None:
        began = time.monotonic()
        session.exec(f"exit 0\n{command}")
        assert time.monotonic() - began < 30
        assert said(session, "echo on") == "on\n"

    @pytest.mark.parametrize("value", [r"\a", "''a", r'"\\"'], ids=["escapes", "quotes", "double quotes"])
    def test_a_state(self, session: SandboxSession, value: str) -> None:
        count = 60_000
        began = time.monotonic()
        session.exec(
            f"{{ printf 'export LONG='; yes {shlex.quote(value)} | head -n {count} | tr -d '\\n'; echo; }} >&7"
        )
        assert time.monotonic() - began < 30
        assert said(session, "echo ${#LONG}") == f"{count}\n"


class TestSetup:
    def test_fixtures_are_written_with_content_and_mode(self, opened: Opener) -> None:
        files = [
            Fixture("/home/agent/NOTICE", "grüße\n".encode()),
            Fixture("/usr/local/bin/tool", b"#!/bin/sh\necho tool $1\n", 0o755),
            Fixture("/var/spool/deep/down/x", bytes(range(256)), 0o400),
            Fixture("/srv/empty", b"", 0o600),
        ]
        session = opened(files, motd="Welcome\n", banner="Keep out\n")
        assert said(session, "cat NOTICE; tool 1; cat /etc/motd /etc/issue") == "grüße\ntool 1\nWelcome\nKeep out\n"
        assert said(session, "stat -c '%a %s %U' /var/spool/deep/down/x /srv/empty") == "400 256 agent\n600 0 agent\n"
        assert (
            said(session, "od -An -v -tu1 /var/spool/deep/down/x | tr -s ' \\n' ' '")
            == " " + " ".join(str(byte) for byte in range(256)) + " "
        )

    @pytest.mark.parametrize(
        "path",
        [
            "/etc/passwd", "/srv/../etc/x", "relative", "/srv", "/srv/", "//srv/x", "/srv//x", "/srv/./x",
            "/tmp/x",  # noqa: S108
            "/home/agent/../x", "/srv/a\0b", "/proc/1/x", "", "/home/agentx/y",
        ],
    )  # fmt: skip
    def test_fixtures_elsewhere_are_refused(self, opened: Opener, path: str) -> None:
        with pytest.raises(SetupRefused):
            opened([Fixture(path, b"x")])

    @pytest.mark.parametrize(
        "fixtures",
        [
            [Fixture("/srv/a", b"x"), Fixture("/srv/a", b"y")],
            [Fixture("/srv/a", b"x"), Fixture("/srv/a/b", b"y")],
            [Fixture("/srv/a", b"x", 0o4755)],
            [Fixture("/var/big", bytes(5 * 1024 * 1024))],
        ],
    )
    def test_impossible_fixtures_are_refused(self, opened: Opener, fixtures: list[Fixture]) -> None:
        with pytest.raises(SetupRefused):
            opened(fixtures)

    @pytest.mark.parametrize("env", [{"A B": "x"}, {"1A": "x"}, {"A": "x\0y"}, {"A": "x" * 100_000}, {"": "x"}])
    def test_impossible_variables_are_refused(self, opened: Opener, env: dict[str, str]) -> None:
        with pytest.raises(SetupRefused):
            opened(env=env)

    @pytest.mark.parametrize("command", ["echo \0", "x" * 200_000, "echo \ud800"])
    def test_a_command_that_cannot_be_passed_to_a_process_is_refused(
        self, session: SandboxSession, command: str
    ) -> None:
        with pytest.raises(SetupRefused):
            session.exec(command)
        assert said(session, "echo on") == "on\n"


def test_a_checker_can_run_again_on_what_it_left_but_no_command(opened: Opener) -> None:
    session = opened([Fixture("/srv/count", b"")])
    session.exec("echo done > /srv/result")
    for number in (1, 2, 3):
        counted = 'lines=$(cat /srv/count && echo x); echo "$lines" > /srv/count; wc -l < /srv/count'
        check = session.check(f"{counted}; cat /srv/result", terminal="exit")
        assert (check.passed, check.output) == (True, f"{number}\ndone\n")
    with pytest.raises(SandboxFailed, match="its checker has run"):
        session.exec("true")
