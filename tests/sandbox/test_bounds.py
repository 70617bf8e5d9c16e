"""The limits of a session: each excess is stopped, counts as a turn, and the next command works."""

import time

import pytest

from sandbox.protocol import MEBIBYTE, SandboxSession, SessionLimits
from tests.sandbox.conftest import Opener

BOMB = "bomb() { bomb | bomb & }; bomb"


def works(session: SandboxSession) -> bool:
    result = session.exec("echo $((6 * 7)) | cat; ls / >/dev/null")
    return (result.output, result.exit_code) == ("42\n", 0)


class TestTime:
    def test_a_sleep_past_the_limit_dies_with_its_children(self, session: SandboxSession) -> None:
        began = time.monotonic()
        result = session.exec(
            "cd /srv; sleep 300 & (sleep 301; echo x) | sh -c 'sleep 302; cat'; echo never", timeout=0.5
        )
        assert (result.timed_out, result.exit_code, result.left, result.output) == (True, 137, False, "")
        assert time.monotonic() - began < 60
        assert session.exec("pgrep -c sleep").output == "0\n"
        assert session.cwd() == "/home/agent"
        assert works(session)

    def test_a_timeout_also_kills_hidden_processes(self, session: SandboxSession) -> None:
        hidden = (
            "trap '' TERM HUP INT; setsid sh -c 'trap \"\" TERM HUP; (sleep 300 &) ; sleep 300' & nohup sleep 300; wait"
        )
        assert session.exec(hidden, timeout=0.5).timed_out
        assert session.exec("pgrep -c sleep").output == "0\n"

    def test_a_killed_busy_loop_keeps_its_output(self, session: SandboxSession) -> None:
        result = session.exec("echo before; while :; do :; done", timeout=0.5)
        assert result.timed_out and result.output == "before\n"
        assert 0.4 < result.duration < 10

    def test_endless_output_is_cut_off_by_time(self, session: SandboxSession) -> None:
        result = session.exec("yes", timeout=0.5)
        assert result.timed_out and result.truncated and len(result.output) < 66_000
        assert session.exec("echo clean").output == "clean\n"

    def test_the_sessions_own_limit_is_the_default(self, opened: Opener) -> None:
        assert opened(limits=SessionLimits(command_seconds=0.3)).exec("sleep 5").timed_out

    def test_a_stopped_process_is_a_timeout_too(self, session: SandboxSession) -> None:
        assert session.exec("kill -STOP $$", timeout=0.5).timed_out
        assert works(session)


class TestProcesses:
    def test_a_fork_bomb_in_front(self, session: SandboxSession) -> None:
        # In its own shell: the outer one would end when it cannot fork any more.
        assert session.exec(f"({BOMB}) & while :; do :; done", timeout=1).timed_out
        assert works(session)

    def test_a_fork_bomb_left_behind(self, session: SandboxSession) -> None:
        session.exec(BOMB, timeout=2)
        results = [session.exec("echo $((6 * 7)) | cat", timeout=5) for _ in range(3)]
        assert all(result.output.endswith("42\n") or "ork" in result.output for result in results)
        session.exec("kill -9 -1")
        session.exec("kill -9 -1")
        assert session.check("true", terminal="exit").passed

    def test_when_no_process_is_free_all_are_killed_for_the_next_command(self, session: SandboxSession) -> None:
        session.exec("i=0; while [ $i -lt 200 ]; do sleep 300 & i=$((i+1)); done", timeout=5)
        result = session.exec("echo in | cat")
        assert result.output == "sh: too many processes: all that were running have been killed\nin\n"
        assert works(session)

    def test_init_cannot_be_killed(self, session: SandboxSession) -> None:
        for signal in ("KILL", "STOP", "TERM", "SEGV", "ABRT", "CHLD", "PIPE", "CONT"):
            session.exec(f"kill -{signal} 1")
        assert works(session)

    def test_killing_all_spares_the_shell_that_does_it(self, session: SandboxSession) -> None:
        session.exec("sleep 300 &")
        assert session.exec("kill -9 -1; echo done").output == "done\n"
        assert session.exec("sleep 0.5; pgrep -c sleep").output == "0\n"
        assert works(session)

    def test_orphans_are_reaped(self, session: SandboxSession) -> None:
        session.exec("i=0; while [ $i -lt 50 ]; do (sleep 0.05 &); i=$((i+1)); done; sleep 0.5")
        assert session.exec("ps -eo stat= | grep -c Z").output == "0\n"


class TestMemory:
    def test_a_memory_hog(self, session: SandboxSession) -> None:
        result = session.exec("""perl -e '$x = "a" x 1e9; print length $x'""")
        assert result.exit_code != 0 and not result.timed_out and "1000000000" not in result.output
        assert works(session)

    def test_many_small_hogs(self, session: SandboxSession) -> None:
        one = """perl -e 'my @x; push @x, "a" x 1e6 for 1 .. 100; sleep 3' &"""
        session.exec(f"{one * 6} sleep 2", timeout=10)
        assert works(session)
        assert session.check("true", terminal="exit").passed

    @pytest.mark.parametrize("size", [3e6, 6e6])
    def test_many_small_processes_that_the_kernel_spares_are_the_agents(
        self, session: SandboxSession, size: float
    ) -> None:
        spared = 'open(F, ">", "/proc/self/oom_score_adj") && syswrite(F, 0);'
        one = f'fork // next or do {{ my $x = "a" x {size}; sleep 30 }}'
        for _ in range(2):
            session.exec(f"perl -e '{spared} for (1 .. 120) {{ {one} }} sleep 30' & sleep 1", timeout=10)
        assert session.exec("echo next").exit_code in (0, 137)
        assert not session.check("false", terminal="exit").passed

    def test_a_hog_cannot_protect_itself_from_the_kernel(self, session: SandboxSession) -> None:
        session.exec("""echo -900 > /proc/self/oom_score_adj; perl -e '$x = "a" x 1e9'""")
        assert works(session)


class TestDisk:
    def test_a_disk_filler_finds_the_disk_full(self, session: SandboxSession) -> None:
        places = "/home/agent /tmp /srv /opt /usr/local /var /run /dev/shm /dev /"
        result = session.exec(f"for place in {places}; do head -c 200000000 /dev/zero > $place/fill; done")
        assert "No space left on device" in result.output
        assert works(session)
        sizes = "for place in /home/agent /tmp /srv /opt /usr/local /var /run; do stat -c %s $place/fill; done"
        total = sum(int(line) for line in session.exec(sizes).output.split())
        assert 0.9 * 64 * MEBIBYTE < total <= 64 * MEBIBYTE
        assert not session.check("test $(stat -c %s /tmp/fill) -lt 1000", terminal="exit").passed

    def test_the_limit_is_the_one_of_the_setup(self, opened: Opener) -> None:
        session = opened(limits=SessionLimits(disk=8 * MEBIBYTE))
        assert session.exec("head -c 5000000 /dev/zero > ~/fill").exit_code == 1
        assert session.exec("head -c 3000000 /dev/zero > ~/fill").exit_code == 0

    def test_a_sparse_file_takes_no_space(self, session: SandboxSession) -> None:
        session.exec("truncate -s 1T ~/giant; ls ~")
        assert works(session)

    def test_countless_empty_files(self, session: SandboxSession) -> None:
        many = """perl -e 'for my $i (0 .. 2_000_000) { open(my $f, ">", "/tmp/f$i") or die "full: $!" }'"""
        result = session.exec(many, timeout=20)
        assert result.exit_code != 0
        assert works(session)
        assert session.check("true", terminal="exit").passed
