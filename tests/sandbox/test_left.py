"""Attempts to forge the supervisor's report about a command: that its end was reached, its code, its time.

Each attempt ends early with code 3, and tries to be reported as a command that reached its end.
"""

import pytest

from sandbox.protocol import SandboxSession, SessionLimits
from tests.sandbox.conftest import Opener

MARK = r"^.*\(\.[0-9a-f]\{32\}\).*$"
# Prints each mark of an end in a text.
MARKS = rf"tr '\000;' '\n\n' 2>/dev/null | sed -n 's/{MARK}/\1/p'"
END = "{ set -- 3;export -p;echo $m;} >&7; kill -9 $$; exit 3"
# ptrace, process_vm_readv, process_vm_writev
REACHING = {"x86_64": (101, 310, 311), "aarch64": (117, 270, 271)}
# A read by the shell's own builtins from a descriptor or a path.
READ = 'read -r l <{0} && m=$l && eval "$l"'
SAYS = "export -p >&7; echo $m >&7; exit 3"
# Reports the mark that a here document took.
TAKE = f"m=$({MARKS} < /tmp/x); {END}"
ATTEMPTS = {
    "its own command line": f"m=$(cat /proc/$$/cmdline | {MARKS}); {SAYS}",
    "every command line": f"m=$(cat /proc/[0-9]*/cmdline | {MARKS}); {SAYS}",
    "the last line of its own text": "eval \"$(tr '\\000' '\\n' < /proc/$$/cmdline | tail -n 1"
    " | sed 's/exit .1/:/')\"; exit 3",
    "every environment": f"m=$(cat /proc/[0-9]*/environ 2>/dev/null | {MARKS}); {SAYS}",
    "its environment, by a builtin": f"m=$(env | {MARKS}); {SAYS}",
    "every descriptor of every process": "for f in /proc/[0-9]*/fd/*; do timeout 0.1 head -c 4096 $f; done"
    " > /tmp/all 2>&1;"
    f" m=$({MARKS} < /tmp/all); {SAYS}",
    "its own descriptors, opened again": "for n in 8 9 10 11 12 255; do . /proc/self/fd/$n; done; exit 3",
    "its own descriptors, opened again one by one": "(. /proc/self/fd/10); command . /proc/self/fd/10; exit 3",
    "the names of its descriptors": "for n in 8 9; do " + READ.format("&$n") + "; done; exit 3",
    "a descriptor above 9": "exec 5<&10; " + READ.format("&5") + "; exit 3",
    "a descriptor above 9, by a variable": "n=10; exec 5<&$n; " + READ.format("&5") + "; exit 3",
    "the modes of its descriptors": "chmod 777 /proc/$$/fd/* /proc/self/fd/*; . /proc/self/fd/10; exit 3",
    "its descriptors, by a child": "perl -e 'for my $n (7 .. 40) {"
    " open(my $f, q(<), qq(/proc/).getppid.qq(/fd/$n)) or next;"
    " sysread($f, my $x, 4096); open(my $o, q(>&=), 7); print $o $x }'; exit 3",
    "the memory of its shell": "perl -e 'my $p = getppid; open(my $m, q(<), qq(/proc/$p/maps)) or exit; for (<$m>) {"
    " /^(\\w+)-(\\w+) rw/ or next; open(my $f, q(<), qq(/proc/$p/mem)); sysseek($f, hex $1, 0);"
    " sysread($f, my $x, hex($2) - hex $1); print qq($1\\n) while $x =~ /(\\.[0-9a-f]{32})/g }' > /tmp/marks;"
    " export -p >&7; cat /tmp/marks >&7; exit 3",
    "marks of every form": "export -p >&7; for m in . .0 .x ..mark .$$ . \"\"; do echo $m >&7; done; exit 3",
    "a guess of many marks": "export -p >&7; perl -e 'printf(qq(.%032x\\n), rand 2**32) for 1 .. 5000' >&7; exit 3",
    "marks and frames on its terminal": "export -p; echo .; printf '\\000\\000\\000\\001D';"
    " printf '\\000\\000\\000\\001D' >&2; exit 3",
    "killing its shell": "export -p >&7; (kill -9 $$); exit 3",
    "killing every process": "export -p >&7; kill -9 -1; exit 3",
    "another program in its place": "exec sh -c 'export -p >&7; exit 3'",
    "another program in its place, with its descriptors": "exec perl -e 'for my $n (3 .. 40) {"
    " open(my $f, q(<&=), $n) or next; sysread($f, my $x, 4096); print $x } exit 3'",
    "the same shell in its place": "exec sh sh 3>&7",
    "an EXIT trap": "trap 'export -p >&7; echo . >&7; exit 3' 0; exit 3",
    "the EXIT trap that it was given": "t=$(trap);"
    " eval \"$(echo \"$t\" | sed \"s/^trap -- '//; s/' EXIT.*//\")\"; exit 3",
    "a here document without an end": "cat <<X > /tmp/x; " + TAKE,
    "a here document whose end only seems there": "cat <<'a b' > /tmp/x; " + TAKE + "\na\n",
    "a here document with a strange end": "cat <<a\\ b > /tmp/x; " + TAKE + "\na\n",
    "a here document whose end goes on in the next line": "cat <<a\\\nb > /tmp/x; " + TAKE + "\na\n",
    "a here document whose end is a substitution": "cat <<`a b` > /tmp/x; " + TAKE + "\n`a\n",
    "a here document of an alias": "alias x='cat <<E > /tmp/x; m=$(cat /tmp/x | " + MARKS.replace("'", "'\\''") + "); "
    + END + "'\nx\n",
    "a here document that reads what follows": "alias x='eval \"$(cat <<E\n'\nx\n",
    "a function in the way of what follows": "alias x='f \\'\nf() { m=$*; exit 3; }\nx\n",
    "a pipe that what follows goes into": "f() { cat > /tmp/x; exit 3; }\nalias x='exit 3 |'\nx\n f\nexit 3",
    "an eval that reads on": "alias x='eval \"'\nx\nexit 3",
    "verbose reading": "set -v; exec 2>/tmp/v; exit 3",
    "a background process that waits for the mark": "(while :; do"
    f" cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ; sleep 0.01; done 2>/dev/null"
    f" | {MARKS} >&7) & sleep 0.2; export -p >&7; exit 3",
}  # fmt: skip


class TestLeft:
    @pytest.mark.parametrize("name", ATTEMPTS)
    def test_the_end_is_not_reached_by(self, session: SandboxSession, name: str) -> None:
        result = session.exec(ATTEMPTS[name], timeout=10)
        assert result.left or result.timed_out, result
        assert session.exec("echo on").output == "on\n"

    def test_nothing_of_one_command_helps_the_next(self, session: SandboxSession) -> None:
        """A process of an earlier command reads as much of a later one as possible, and writes its findings to it."""
        watch = (
            "perl -e 'while (1) { for my $p (grep { m{/\\d+$} && $_ ne qq(/proc/$$) } glob q(/proc/*)) {"
            " for my $f (glob(qq($p/fd/*)), qq($p/cmdline), qq($p/environ), qq($p/mem)) {"
            " open(my $in, q(<), $f) or next;"
            " sysread($in, my $x, 4096); print qq($f $1\\n) while ($x // q()) =~ /(\\.[0-9a-f]{32})/g }"
            " syscall(101, 16, $p =~ s/\\D//gr, 0, 0) if $p !~ m{/1$} } }' > /tmp/seen 2>&1 & sleep 0.2"
        )
        assert not session.exec(watch).left
        for _ in range(20):
            assert not session.exec("echo a; sleep 0.01; true").left
            assert session.exec("sleep 0.01; exit 3").left
        assert session.exec("cat /tmp/seen").output == ""

    def test_the_shell_of_a_command_is_closed_to_its_children(self, session: SandboxSession) -> None:
        for command in ("ls {0}/fd", "head -c 1 {0}/mem", "cat {0}/environ", "readlink {0}/exe", "cat {0}/maps",
                        "cat {0}/syscall", "ls -L {0}/root"):  # fmt: skip
            assert (
                session.exec(f"sh -c '{command.format('/proc/$PPID')} | grep -q . && echo GOT IN' 2>/dev/null").output
                == ""
            ), command
        ptrace, *copies = REACHING[session.exec("uname -m").output.strip()]
        for request in (16, 0x4206):  # PTRACE_ATTACH, PTRACE_SEIZE
            assert session.exec(f"perl -e 'print syscall({ptrace}, {request}, getppid, 0, 0)'").output == "-1"
        for number in copies:
            call = "my $x = q(x) x 8; my $v = pack(q(PQ), $x, 8); my $r = pack(q(QQ), 0x400000, 8);"
            assert session.exec(f"perl -e '{call} print syscall({number}, getppid, $v, 1, $r, 1, 0)'").output == "-1"

    @pytest.mark.parametrize(
        ("command", "output"),
        [
            ("cat <<'a b'\nx\na b", "x\n"),
            ('cat <<"a b" | tr x y\nx\na b\n', "y\n"),
            ("alias x='echo ali'\nx as\n", "ali as\n"),
            ("alias x='cat <<E'\nx\nhere\nE\n", "here\n"),
            ("f() { cat; }\nf <<A\na\nA", "a\n"),
            ("printf '%s\\n' " + "x" * 100_000 + " | wc -c", "100001\n"),
            ("# " + "x\n#" * 5000 + "\necho a", "a\n"),
            ("#" + "x" * 4094 + "\necho a", "a\n"),
            ("#" + "x" * 4095 + "\necho a", "a\n"),
            ("", ""),
        ],
    )
    def test_honest_commands_reach_their_end(self, session: SandboxSession, command: str, output: str) -> None:
        result = session.exec(command or "\n")
        assert (result.output, result.exit_code, result.left) == (output, 0, False)


class TestOtherReports:
    def test_the_exit_code_is_the_kernels(self, session: SandboxSession) -> None:
        for says in ("{ echo 0; export -p; } >&7", "trap 'echo exit 0 >&7' 0", "printf 'exit 0\\n' >&7"):
            assert session.exec(f"{says}; exit 5").exit_code == 5
        assert session.exec("kill -9 $$").exit_code == 137
        assert session.exec("(exit 3) & exit 4").exit_code == 4

    def test_the_time_is_the_supervisors(self, session: SandboxSession) -> None:
        slow = "date -s @0; export SECONDS=0; faketime now true"
        assert session.exec(f"{{ {slow}; }} 2>/dev/null; sleep 0.3").duration >= 0.3

    def test_a_timeout_is_the_supervisors(self, opened: Opener) -> None:
        session = opened(limits=SessionLimits(command_seconds=0.5))
        result = session.exec("trap '' TERM INT HUP 0; export -p >&7; while :; do sleep 9; done")
        assert (result.timed_out, result.exit_code) == (True, 137)
        assert not session.exec("exit 137").timed_out and not session.exec("kill -9 $$").timed_out

    def test_that_output_was_cut_is_counted(self, opened: Opener) -> None:
        session = opened(limits=SessionLimits(output=1000))
        said = "[… 5 bytes left out …]"
        assert not session.exec(f"echo '{said}'").truncated
        assert session.exec("seq 1000").truncated
