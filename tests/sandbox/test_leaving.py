"""Attempts to leave the sandbox or to reach the supervisor or the checker, on every backend."""

import pytest

from sandbox.protocol import Fixture, SandboxSession, SessionLimits
from sandbox.setup import CHECK_ENVIRONMENT
from tests.sandbox.conftest import Opener


def denied(session: SandboxSession, command: str) -> bool:
    result = session.exec(f"{command} 2>/dev/null && echo GOT IN")
    return "GOT IN" not in result.output and not result.timed_out


class TestTheMachine:
    def test_no_network(self, session: SandboxSession) -> None:
        assert session.exec("cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d ' '").output in {"lo\n", ""}
        connect = (
            "perl -e 'socket(S, 2, 1, 0) or die; connect(S, pack(q{SnC4x8}, 2, 53, {address})) and print qq{GOT IN}'"
        )
        for address in ("8,8,8,8", "169,254,169,254", "127,0,0,1", "10,0,2,2", "172,17,0,1"):
            result = session.exec(connect.replace("{address}", address), timeout=3)
            assert "GOT IN" not in result.output and not result.timed_out

    def test_the_hosts_sockets_and_virtual_machines_are_out_of_reach(self, session: SandboxSession) -> None:
        assert session.exec("ls /run").output == "issue\nmotd\n"
        assert session.exec("cut -d' ' -f8- /proc/net/unix | grep -c /").output == "0\n"
        vsock = (
            "perl -e 'socket(S, 40, 1, 0) and connect(S, pack(q{SSLL}, 40, 0, 22, 2)) and print qq{GOT IN}; print $!'"
        )
        assert "GOT IN" not in session.exec(vsock, timeout=3).output

    @pytest.mark.parametrize(
        "command",
        [
            "mount -t tmpfs none /tmp", "mount --bind /srv /opt", "mount -o remount,rw /", "umount /tmp",
            "umount -l /proc", "unshare -m true", "unshare -Ur true", "unshare -n true", "unshare -p true",
            "chroot / true",
            "nsenter -t 1 -m true", "mount -t proc proc /srv", "losetup -f", "swapon /srv/x", "pivot_root / /srv",
        ],
    )  # fmt: skip
    def test_no_mounts_and_no_namespaces(self, session: SandboxSession, command: str) -> None:
        assert denied(session, command)

    def test_user_namespaces_are_refused_by_the_kernel_itself(self, session: SandboxSession) -> None:
        numbers = {"x86_64": (272, 165, 155), "aarch64": (97, 40, 41)}
        machine = session.exec("uname -m").output.strip()
        unshare, mount, pivot = numbers[machine]
        for call in (
            f"{unshare}, 0x10000000",
            f"{unshare}, 0x20000",
            f"{pivot}, $root, $place",
            f"{mount}, 0, $place, 0, 32, 0",
        ):
            assert session.exec(f"perl -e 'my ($root, $place) = (q(/), q(/srv)); print syscall({call})'").output == "-1"

    @pytest.mark.parametrize(
        "path",
        [
            "/x", "/etc/x", "/etc/passwd", "/usr/x", "/usr/bin/sh", "/bin/x", "/lib/x", "/dev/x", "/home/x", "~root/x",
            "/proc/sys/kernel/hostname", "/proc/sys/vm/drop_caches", "/proc/sysrq-trigger",
            "/proc/sys/kernel/core_pattern", "/proc/1/oom_score_adj", "/proc/sys/fs/file-max", "/sys/power/state",
        ],
    )  # fmt: skip
    def test_the_rest_of_the_root_is_read_only(self, session: SandboxSession, path: str) -> None:
        assert denied(session, f"echo 0 > {path}")
        assert denied(session, f"chmod 777 {path.rpartition('/')[0] or '/'} && echo 0 > {path}")

    def test_the_root_is_writable_where_it_is_meant_to_be(self, session: SandboxSession) -> None:
        for place in ("/home/agent", "/tmp", "/srv", "/opt", "/usr/local", "/usr/local/bin", "/var", "/var/tmp"):  # noqa: S108
            assert session.exec(f"echo x > {place}/x && cat {place}/x").output == "x\n", place

    def test_no_devices(self, session: SandboxSession) -> None:
        assert session.exec("find /dev -type b").output == ""
        assert denied(session, "mknod /tmp/sda b 8 0") and denied(session, "mknod /tmp/mem c 1 1")
        listed = set(session.exec("find /dev -type c").output.split())
        assert listed <= {
            f"/dev/{n}" for n in ("null", "zero", "full", "random", "urandom", "tty", "console", "ptmx")
        } | {"/dev/pts/ptmx"}
        assert (
            session.exec("head -c 3 /dev/urandom | wc -c; echo x > /dev/null; head -c 2 /dev/zero | wc -c").output
            == "3\n2\n"
        )

    def test_no_privilege_can_be_gained(self, session: SandboxSession) -> None:
        status = session.exec("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status | tr -d '\\t'").output.split()
        assert {"CapInh:0000000000000000", "CapPrm:0000000000000000", "CapEff:0000000000000000"} <= set(status)
        assert {"CapAmb:0000000000000000", "CapBnd:0000000000000000", "NoNewPrivs:1", "Seccomp:2"} <= set(status)
        own = "cp /bin/cat /tmp/c && chmod 4755 /tmp/c && /tmp/c /proc/self/status | grep ^Uid"
        assert session.exec(own).output.split() == ["Uid:", "1000", "1000", "1000", "1000"]
        assert denied(session, "su -c true") and denied(session, "chown 0 /tmp/c")
        assert denied(session, "perl -e '$< = $> = 0; exit($> != 0)'")
        assert (
            session.exec("find / -xdev -perm -4000 -user root -exec {} --help ';' 2>&1 | grep -c 'uid=0'").output
            == "0\n"
        )

    def test_open_files_and_queues_are_bounded(self, session: SandboxSession) -> None:
        assert session.exec("ulimit -Hn; ulimit -Hc; ulimit -Hl").output == "1024\n0\n0\n"
        assert session.exec("ulimit -n 4096").exit_code != 0

    def test_nothing_of_the_host_is_in_view(self, session: SandboxSession) -> None:
        assert session.exec("ls /home").output == "agent\n"
        assert denied(session, "ls -A /root | grep .")
        assert session.exec("ls -A /mnt /media /boot 2>/dev/null | grep -v :").output.strip() == ""
        assert denied(session, "cat /etc/shadow")
        assert session.exec('set -- /proc/[0-9]*; test "$*" = "/proc/1 /proc/$$"').exit_code == 0


class TestTheSupervisor:
    def test_its_memory_and_its_conversation_are_closed(self, session: SandboxSession) -> None:
        for command in ("cat /proc/1/environ", "ls /proc/1/fd/", "head -c 1 /proc/1/mem", "ls -L /proc/1/root",
                        "readlink /proc/1/exe", "cat /proc/1/maps | grep .", "echo X > /proc/1/fd/20"):  # fmt: skip
            assert denied(session, command), command
        assert session.exec("tr '\\0' ' ' < /proc/1/cmdline").output.strip() == "init"
        assert session.exec("echo on").output == "on\n"

    def test_it_cannot_be_traced_or_starved(self, session: SandboxSession) -> None:
        machine = session.exec("uname -m").output.strip()
        ptrace, prlimit = {"x86_64": (101, 302), "aarch64": (117, 261)}[machine]
        for request in (16, 0x4206):  # PTRACE_ATTACH, PTRACE_SEIZE
            assert session.exec(f"perl -e 'print syscall({ptrace}, {request}, 1, 0, 0)'").output == "-1"
        session.exec(f"perl -e 'my $none = pack(q{{QQ}}, 0, 0); syscall({prlimit}, 1, 0, $none, 0)'")
        assert session.exec("echo on").output == "on\n"

    def test_no_descriptor_of_its_reaches_a_command(self, session: SandboxSession) -> None:
        listed = session.exec("ls /proc/self/fd").output.split()
        assert listed == ["0", "1", "2", "3", "7"]  # 3 is the folder that ls reads; 7 takes the shell's state
        assert session.exec("readlink /proc/self/fd/0").output == "/dev/null\n"

    def test_frames_that_an_agent_makes_up_are_output(self, session: SandboxSession) -> None:
        frame = r"\000\000\000\001R\000\000\000\011D\000\000\000\0010"
        result = session.exec(f"printf '{frame}'; printf '{frame}' >&2; printf '{frame}' >&7 ; exit 5")
        assert (result.exit_code, result.left) == (5, True)
        assert session.exec("pwd").output == "/home/agent\n"

    def test_a_state_that_an_agent_makes_up_only_affects_its_commands(self, session: SandboxSession) -> None:
        session.exec(
            "printf 'export PWD=\\047/etc\\047\\nexport HOME=\\047/evil\\047\\n.\\n' >&7; exec 7>&-; kill -9 $$"
        )
        assert session.exec("echo on").output == "on\n"
        session.exec("head -c 3000000 /dev/zero >&7; echo 'export X=1' >&7")
        assert session.exec("echo on").output == "on\n"
        session.exec("exec 7>&-")
        assert session.exec("echo on").output == "on\n"
        assert session.check('test "$HOME" = /home/agent && test "$PWD" = /home/agent', terminal="exit").passed


class TestTheChecker:
    def test_it_sees_the_state_and_nothing_of_the_agents_environment(self, opened: Opener) -> None:
        session = opened(env={"NOTICE": "x"})
        session.exec("echo done > /srv/state; export EVIL=1 PATH=/srv LD_PRELOAD=/srv/x.so ENV=/srv/rc; cd /srv")
        checker = "env; echo HOME=$HOME; pwd; cat /srv/state"
        result = session.check(checker, terminal="panic", panic_reason="no way")
        assert result.passed and result.exit_code == 0
        *variables, pwd, state = result.output.splitlines()
        temporary = next(line for line in variables if line.startswith("TMPDIR=/tmp/."))
        own = {"HOME": "/home/agent", "PWD": "/home/agent", "TERMINAL": "panic", "PANIC_REASON": "no way"}
        expected = [f"{name}={value}" for name, value in (CHECK_ENVIRONMENT | own).items()]
        assert sorted(variables) == sorted([*expected, temporary])
        assert (pwd, state) == ("/home/agent", "done")

    def test_its_verdict_is_its_status(self, opened: Opener) -> None:
        assert not opened().check("exit 1", terminal="exit").passed
        failed = opened().check("echo 'not there' >&2; exit 3", terminal="")
        assert (failed.passed, failed.exit_code, failed.output) == (False, 3, "not there\n")
        assert not opened().check("if then", terminal="exit").passed

    def test_every_process_of_the_agent_is_dead_before(self, session: SandboxSession) -> None:
        session.exec("(while :; do echo alive > /srv/alive; sleep 0.01; done) & setsid sleep 300 & sleep 0.1")
        checker = """
            rm /srv/alive; sleep 0.2
            set -- /proc/[0-9]*
            test ! -e /srv/alive && test "$*" = "/proc/1 /proc/$$"
        """
        assert session.check(checker, terminal="exit").passed

    def test_it_is_never_in_view(self, session: SandboxSession) -> None:
        """A background process looks for the checker's text in every place it can read."""
        look = "grep -lsa [9]f1c-secret /tmp/* /srv/* /var/tmp/* /run/* /proc/[0-9]*/cmdline /proc/[0-9]*/environ"
        session.exec(f"(while :; do {look} >> /home/agent/seen; done) & sleep 0.1")
        result = session.check("true 9f1c-secret; sleep 0.2; test ! -s /home/agent/seen", terminal="exit")
        assert result.passed, result.output

    def test_an_agent_cannot_plant_what_it_runs(self, session: SandboxSession) -> None:
        session.exec("for tool in test cat grep ls sh; do printf '#!/bin/sh\\nexit 0\\n' > /usr/local/bin/$tool; done")
        session.exec(
            "chmod +x /usr/local/bin/*; echo 'exit 0' > ~/.profile; cp ~/.profile ~/.shrc; cp ~/.profile ~/.bashrc"
        )
        assert not session.check("grep -q wanted /srv/nothing", terminal="exit").passed

    def test_a_checker_that_hangs_has_not_passed(self, opened: Opener) -> None:
        session = opened(limits=SessionLimits(check_seconds=0.3))
        result = session.check("sleep 60 & sleep 60", terminal="exit")
        assert (result.passed, result.timed_out) == (False, True)

    def test_links_give_the_checker_no_more_access_than_the_agent(self, opened: Opener) -> None:
        session = opened([Fixture("/srv/answer", b"no\n")])
        session.exec("rm /srv/answer; ln -s /proc/self/environ /srv/answer; ln -s /etc /srv/etc")
        result = session.check("grep -qx yes /srv/answer", terminal="exit")
        assert not result.passed and not result.timed_out
