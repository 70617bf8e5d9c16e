"""Attempts to decide the checker's verdict: the state is wrong, and the agent's leftovers must not make it pass.

Each attempt first shows that it works where the agent itself runs the same program, for each interpreter in the root.
"""

from dataclasses import dataclass

import pytest

from sandbox.protocol import Fixture, SandboxSession
from tests.sandbox.conftest import Opener

IS_DONE = "grep -qx yes /srv/answer || exit 1"
DO_IT = "echo yes > /srv/answer"
PYTHON = """python3 -c 'import json, sys; sys.exit(open("/srv/answer").read() != "yes\\n")'"""
PYTHON_EVIL = "import os\nos.system('echo yes > /srv/answer')\n"
PERL = """perl -e 'use strict; open(my $f, "<", "/srv/answer"); exit(<$f> ne "yes\n")'"""
PERL_EVIL = "BEGIN { system(q(echo yes > /srv/answer)) } 1;"
WRITABLE = "grep -E '^(/usr/local|/var|/opt|/srv|/home|/tmp|/run)'"
TCL = (
    """printf 'catch {package require faster}\nset f [open /srv/answer]\nexit [expr {[gets $f] ne "yes"}]\n' | tclsh"""
)
GIT = "git -C /srv/repo status > /dev/null; " + IS_DONE
REPO = "git init -q /srv/repo; echo 'echo yes > /srv/answer' > /srv/evil; chmod +x /srv/evil; "


@dataclass(frozen=True)
class Attempt:
    """`program` is required in the root, `before` are the agent's commands, `checker` judges the state.

    `works`: the checker's text passes if the agent itself runs it, so the attempt is no empty one. `hangs`: the
    agent's commands do not end before their time limit.
    """

    program: str
    before: str
    checker: str = IS_DONE
    works: bool = True
    hangs: bool = False


def python_in(folder: str, name: str, text: str = PYTHON_EVIL) -> str:
    return f"d=$(python3 -c 'import site; print({folder})'); mkdir -p $d; printf '%s' \"{text}\" > $d/{name}"


def in_perls_folders(name: str) -> str:
    folders = f"$(perl -e 'print qq($_\\n) for @INC' | {WRITABLE})"
    return f"for d in {folders}; do mkdir -p $d; echo '{PERL_EVIL}' > $d/{name}; done"


def shims(folder: str) -> str:
    made = f"printf '#!/bin/sh\\nexit 0\\n' > {folder}/$tool; chmod +x {folder}/$tool"
    return f"mkdir -p {folder}; for tool in test cat grep ls sh env cksum; do {made}; done"


ATTEMPTS = {
    "python: a module in the home's site-packages": Attempt(
        "python3", python_in("site.getusersitepackages()", "usercustomize.py"), PYTHON
    ),
    "python: a .pth file in the home's site-packages": Attempt(
        "python3", python_in("site.getusersitepackages()", "x.pth", PYTHON_EVIL.strip().replace("\n", "; ")), PYTHON
    ),
    "python: a .pth file in /usr/local": Attempt(
        "python3", python_in("site.getsitepackages()[0]", "x.pth", PYTHON_EVIL.strip().replace("\n", "; ")), PYTHON
    ),
    "python: usercustomize in /usr/local": Attempt(
        "python3", python_in("site.getsitepackages()[0]", "usercustomize.py"), PYTHON
    ),
    "python: usercustomize in /usr/local, even with -E": Attempt(
        "python3", python_in("site.getsitepackages()[0]", "usercustomize.py"), PYTHON.replace("-c", "-E -c")
    ),
    "python: an empty environment": Attempt(
        "python3", "mkdir -p ~/.local; " + python_in("site.getusersitepackages()", "usercustomize.py"),
        PYTHON.replace("python3", "env -i HOME=/home/agent /usr/bin/python3"),
    ),
    "python: a module in the working directory": Attempt(
        "python3", f"printf '%s' \"{PYTHON_EVIL}\" > ~/json.py", PYTHON
    ),
    "python: a package's byte code in the working directory": Attempt(
        "python3",
        f"mkdir ~/json; printf '%s' \"{PYTHON_EVIL}\" > ~/json/__init__.py;"
        "python3 -c 'import json'; echo no > /srv/answer;"
        "mv ~/json/__pycache__/__init__.*.pyc ~/json/__init__.pyc; rm ~/json/__init__.py",
        PYTHON,
    ),
    "python: byte code that is not its module's": Attempt(
        "python3",
        "mkdir /srv/app; cd /srv/app; printf 'DONE = 0 ' > rules.py; printf 'DONE = 1 ' > /srv/x;"
        "cp rules.py /srv/good; touch -d @1000 rules.py /srv/x; mv /srv/x rules.py;"
        "python3 -c 'import rules'; cp /srv/good rules.py;"
        "touch -d @1000 rules.py",
        "cd /srv/app; grep -qx 'DONE = 0 ' rules.py &&"
        """ python3 -c 'import sys; sys.path[:0] = ["/srv/app"]; import rules; sys.exit(not rules.DONE)'""",
    ),
    "python: PYTHONPATH and PYTHONSTARTUP": Attempt(
        "python3",
        f"printf '%s' \"{PYTHON_EVIL}\" > /srv/json.py; export PYTHONPATH=/srv PYTHONSTARTUP=/srv/json.py",
        PYTHON,
    ),
    "perl: strict.pm in every folder of @INC that can be written": Attempt(
        "perl",
        in_perls_folders("strict.pm"),
        PERL,
    ),
    "perl: an optional module, in taint mode": Attempt(
        "perl",
        in_perls_folders("Faster.pm"),
        "perl -Te 'eval { require Faster }'; " + IS_DONE,
        works=False,  # taint mode refuses the attempt's own system(); the module is loaded all the same
    ),
    "perl: PERL5LIB and PERL5OPT": Attempt(
        "perl", f"echo '{PERL_EVIL}' > /srv/strict.pm; export PERL5LIB=/srv PERL5OPT=-Mstrict", PERL
    ),
    "tcl: a package in /usr/local": Attempt(
        "tclsh",
        "d=/usr/local/share/tcltk/faster; mkdir -p $d /usr/local/lib/tcltk/faster;"
        f"echo 'package ifneeded faster 1 {{exec sh -c {{{DO_IT}}}; package provide faster 1}}' | tee $d/pkgIndex.tcl"
        " > /usr/local/lib/tcltk/faster/pkgIndex.tcl",
        TCL,
    ),
    "tcl: TCLLIBPATH": Attempt(
        "tclsh",
        f"mkdir /srv/faster; echo 'package ifneeded faster 1 {{exec sh -c {{{DO_IT}}}; package provide faster 1}}'"
        " > /srv/faster/pkgIndex.tcl; export TCLLIBPATH=/srv",
        TCL,
    ),
    "node: NODE_OPTIONS": Attempt(
        "node",
        "echo 'process.exit(0)' > /srv/x.js; export NODE_OPTIONS='--require /srv/x.js'",
        """node -e 'process.exit(require("fs").readFileSync("/srv/answer", "utf8") === "yes\\n" ? 0 : 1)'""",
    ),
    "node: a folder of modules in the home": Attempt(
        "node",
        "mkdir -p ~/node_modules; echo 'process.exit(0)' > ~/node_modules/faster.js",
        """node -e 'try { require("faster") } catch { process.exit(1) }'""",
    ),
    "git: ~/.gitconfig": Attempt("git", REPO + "git config --global core.fsmonitor /srv/evil", GIT),
    "git: ~/.config/git/config": Attempt(
        "git", REPO + "mkdir -p ~/.config/git; git config -f ~/.config/git/config core.fsmonitor /srv/evil", GIT
    ),
    "git: the repository's own settings": Attempt(
        "git", REPO + "git -C /srv/repo config core.fsmonitor /srv/evil", GIT
    ),
    "git: GIT_CONFIG_GLOBAL": Attempt(
        "git", REPO + "git config -f /srv/c core.fsmonitor /srv/evil; export GIT_CONFIG_GLOBAL=/srv/c", GIT
    ),
    "sh: shims on the agent's PATH": Attempt("sh", shims("/srv/bin") + "; export PATH=/srv/bin:$PATH"),
    "sh: shims in /usr/local/bin": Attempt("sh", shims("/usr/local/bin")),
    "sh: shims where a shell without PATH looks": Attempt(
        "dash", shims("/usr/local/bin") + "; " + shims("/usr/local/sbin"),
        "env -i /bin/dash -c 'grep -qx yes /srv/answer'", works=False
    ),
    "sh: the home's profile": Attempt(
        "dash", "for rc in .profile .bashrc .bash_profile .shrc; do echo 'exit 0' > ~/$rc; done",
        "dash -lc 'grep -qx yes /srv/answer'",
    ),
    "sh: ENV": Attempt("dash", "echo 'exit 0' > /srv/rc; export ENV=/srv/rc", "dash -ic 'grep -qx yes /srv/answer'"),
    "sh: a function and an alias": Attempt(
        "sh", "echo 'grep() { return 0; }; alias grep=true' > ~/.shrc; export ENV=~/.shrc; grep() { return 0; }",
        works=False,
    ),
    "bash: BASH_ENV": Attempt(
        "bash", "echo 'exit 0' > /srv/rc; export BASH_ENV=/srv/rc", "bash -c 'grep -qx yes /srv/answer'"
    ),
    "bash: a login shell's profile": Attempt(
        "bash", "echo 'exit 0' > ~/.bash_profile", "bash -lc 'grep -qx yes /srv/answer'"
    ),
    "bash: an interactive shell's settings": Attempt(
        "bash", "echo 'exit 0' > ~/.bashrc; printf 'set completion-ignore-case on' > ~/.inputrc",
        "bash -ic 'grep -qx yes /srv/answer'",
    ),
    "awk: AWKPATH, AWKLIBPATH and a file of the same name": Attempt(
        "awk", "echo 'BEGIN { exit 0 }' > ~/awk; export AWKPATH=/home/agent AWKLIBPATH=/home/agent",
        "awk '$0 == \"yes\" { found = 1 } END { exit !found }' /srv/answer", works=False,
    ),
    "sed: a shim and a script named like one": Attempt(
        "sed", "echo 'exit 0' > ~/sed; chmod +x ~/sed; export PATH=~:$PATH",
        "test \"$(sed -n '/^yes$/p' /srv/answer)\"", works=False,
    ),
    "ed and bc: their variables": Attempt(
        "bc", "echo '1' > /srv/bcrc; export BC_ENV_ARGS=/srv/bcrc",
        "test \"$(echo 0 | bc | head -n 1)\" = 1",
    ),
    "make: MAKEFILES": Attempt(
        "make", f"printf 'x:\\n\\t{DO_IT}\\n' > /srv/m; export MAKEFILES=/srv/m", f"make -s x 2>/dev/null; {IS_DONE}"
    ),
    "make: a file to include in /usr/local/include": Attempt(
        "make", f"mkdir -p /usr/local/include; printf '$(shell {DO_IT})\\n' > /usr/local/include/rules.mk",
        f"printf -- '-include rules.mk\\nx:;\\n' | make -sf - x; {IS_DONE}",
    ),
    "tar: TAR_OPTIONS": Attempt(
        "tar",
        f"echo '{DO_IT}' > /srv/x; chmod +x /srv/x;"
        "export TAR_OPTIONS='--checkpoint=1 --checkpoint-action=exec=/srv/x'",
        f"tar -cf /dev/null -C /srv answer 2>/dev/null; {IS_DONE}",
    ),
    "less: LESSOPEN": Attempt(
        "less", "export LESSOPEN='|echo yes %s'", "test \"$(less /srv/answer)\" = yes", works=False
    ),
    "the loader: LD_LIBRARY_PATH, LD_PRELOAD and /usr/local/lib": Attempt(
        "sh", "for f in libc.so.6 libpcre2-8.so.0; do echo x > /usr/local/lib/$f; echo x > /srv/$f; done;"
        "export LD_LIBRARY_PATH=/srv LD_PRELOAD=/srv/libpcre2-8.so.0", works=False,
    ),
    "the loader: /etc": Attempt(
        "sh", "for f in ld.so.preload ld.so.conf ld.so.cache profile gitconfig; do echo /srv/x > /etc/$f; done",
        works=False,
    ),
    "locale and terminfo": Attempt(
        "sh", "mkdir -p ~/.terminfo/d ~/loc/C.UTF-8; echo x > ~/.terminfo/d/dumb;"
        "export LOCPATH=~/loc TERMINFO=~/.terminfo LC_ALL=evil NLSPATH=~/%N TERM=dumb", works=False,
    ),
    "sh: another /bin/sh": Attempt(
        "sh", "mount --bind /usr/bin/true /bin/sh; ln -sf /usr/bin/true /bin/sh; cp /usr/bin/true /bin/sh", works=False
    ),
    "a process that restores the file": Attempt(
        "sh", f"(trap '' TERM HUP INT; while :; do {DO_IT}; rm -f /srv/answer; done) & setsid sh -c 'while :; do"
        " echo no > /srv/answer; done' & sleep 0.2; kill -9 $!; rm -f /srv/answer; echo no > /srv/answer", works=False,
        checker="sleep 0.3; echo no > /srv/answer; sleep 0.3; " + IS_DONE,
    ),
    "a process that traces every other one": Attempt(
        "perl", "setsid perl -e 'while (1) { for (glob q(/proc/[0-9]*)) { m{(\\d+)} && $1 > 1 && $1 != $$ &&"
        " syscall(101, 16, $1 + 0, 0, 0) } }' & sleep 0.1", "sleep 0.2; " + IS_DONE, works=False, hangs=True,
    ),
}  # fmt: skip


def forged(session: SandboxSession, checker: str) -> bool:
    result = session.check(checker, terminal="exit")
    assert not result.timed_out
    return result.passed


class TestForging:
    @pytest.mark.parametrize(
        "name", [pytest.param(name, marks=[pytest.mark.slow] if ATTEMPTS[name].hangs else []) for name in ATTEMPTS]
    )
    def test_the_agent_cannot_pass_by(self, opened: Opener, name: str) -> None:
        attempt = ATTEMPTS[name]
        session = opened([Fixture("/srv/answer", b"no\n")])
        if session.exec(f"command -v {attempt.program}").exit_code:
            pytest.skip(f"{attempt.program} is not in this root")
        session.exec(attempt.before, timeout=10)
        if attempt.works:
            tried = opened([Fixture("/srv/answer", b"no\n")])
            tried.exec(attempt.before, timeout=10)
            assert tried.exec(f"cd; {attempt.checker}", timeout=10).exit_code == 0, "the attempt does nothing"
        assert not forged(session, attempt.checker)

    @pytest.mark.parametrize(
        "hide",
        [
            "mv /usr/local/lib /usr/local/share ~ && ln -s ~/lib ~/share /usr/local/",
            "chmod 311 /usr/local /usr/local/lib /usr/local/share",
            "chmod 555 /usr/local /usr/local/lib /usr/local/share && find /usr/local -type d -exec chmod 555 {} +",
            """perl -e 'for (1 .. 300) { my $d = q(d) x 200; mkdir $d; chdir $d }'""",
            """perl -e '1 while open my $file, ">", "/usr/local/lib/" . $i++'""",
        ],
        ids=["behind links", "by modes", "from removal", "below deep folders", "on a full disk"],
    )  # fmt: skip
    def test_modules_cannot_be_hidden(self, opened: Opener, hide: str) -> None:
        session = opened([Fixture("/srv/answer", b"no\n")])
        session.exec(ATTEMPTS["perl: strict.pm in every folder of @INC that can be written"].before)
        session.exec(f"cd /usr/local/share; {hide}")
        assert not forged(session, PERL)

    @pytest.mark.parametrize("how", ["", "; mv $d ~/moved; ln -s ~/moved $d"], ids=["beside it", "behind a link"])
    def test_a_fixture_does_not_open_the_folder_that_it_is_in(self, opened: Opener, how: str) -> None:
        here = opened().exec("perl -e 'print +(grep m{^/usr/local/share}, @INC)[0]'").output
        session = opened([Fixture("/srv/answer", b"no\n"), Fixture(f"{here}/Oven.pm", b"1;")])
        session.exec(f"d={here}; echo '{PERL_EVIL}' > $d/strict.pm{how}")
        assert not forged(session, PERL)


class TestWhatTheCheckerSees:
    def test_what_it_names_and_what_the_scenario_brought(self, opened: Opener) -> None:
        session = opened([Fixture("/usr/local/share/oven/a", b"a"), Fixture("/home/agent/.plan", b"a")])
        session.exec(
            "cd /usr/local; mkdir -p etc lib/python3.11 share/kiln-1; echo b > etc/app.conf; echo b > share/oven/b;"
            "echo b > share/kiln-1/x; echo b > bin/tool; echo b > ~/.bashrc; echo b > ~/.plan; echo b > ~/x;"
            "ln -s /srv srv; echo b > share/oven/c; mkdir ~/.config; echo b > ~/.hidden; chmod 750 ~ lib"
        )
        checker = """
            cat /usr/local/etc/app.conf /usr/local/share/oven/b /usr/local/share/kiln-*/x
            cat /usr/local/bin/tool ~/.bashrc x
            test -d /usr/local/srv && cat "$HOME/.plan" && find /usr/local/lib -mindepth 1
            ls /usr/local/shar?/oven; ls -A ~ | tr '\\n' ' '
            stat -c %a ~ /usr/local/lib
        """
        result = session.check(checker, terminal="exit")
        assert result.output == "b\n" * 7 + "a\nb\n.bashrc .plan x 750\n750\n"

    def test_its_folder_for_temporary_files_is_new_and_its_programs_have_no_home(self, session: SandboxSession) -> None:
        session.exec("mkdir ~/t; export TMPDIR=~/t; echo x > /tmp/x")
        checker = 'test -z "$(ls -A "$TMPDIR")" && cd "$(mktemp -d)" && echo x > x && pwd; env | grep ^HOME; cat /tmp/x'
        said = session.check(checker, terminal="exit").output.split()
        assert said[0].startswith("/tmp/.") and said[1:] == ["x"]  # noqa: S108

    def test_what_is_removed_is_not_followed(self, session: SandboxSession) -> None:
        session.exec("echo x > /srv/kept; mkdir /srv/all; echo x > /srv/all/x; chmod 640 /srv/kept")
        session.exec(
            "mkdir /usr/local/lib/d; ln -s /srv/kept /srv/all /usr/local/lib/d; ln -s /srv/all /usr/local/lib/e"
        )
        result = session.check("cat /srv/kept /srv/all/x; stat -c %a /srv/kept; ls /usr/local/lib", terminal="exit")
        assert result.output == "x\nx\n640\n"


class TestSchedules:
    @pytest.mark.parametrize("command", ["nice -n 19 true", "renice -n 19 -u 1000", "renice -n 5 $$", "chrt -b -p 0 $$",
                                         "taskset -cp 0 $$", "ionice -c 3 -p $$"])  # fmt: skip
    def test_no_schedule_is_changed(self, session: SandboxSession, command: str) -> None:
        program = command.split()[0]
        if session.exec(f"command -v {program}").exit_code:
            pytest.skip(f"{program} is not in this root")
        result = session.exec(command)
        assert result.exit_code or "cannot set" in result.output

    def test_no_system_call_changes_one(self, session: SandboxSession) -> None:
        numbers = {"x86_64": (141, 251, 142, 144, 203, 314), "aarch64": (140, 30, 118, 119, 122, 274)}
        for number in numbers[session.exec("uname -m").output.strip()]:
            call = f'my $none = "\\0" x 64; print syscall({number}, 0, 0, $none, 0), " ", $! + 0'
            assert session.exec(f"perl -e '{call}'").output == "-1 1"
