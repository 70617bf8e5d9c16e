# ruff: noqa: S108 - paths inside sandboxes
"""Attempts to decide the checker's verdict by what is left for it: full disks, links and pipes under the names that it
writes, memory that is used up. The state is wrong, and the checker is an ordinary one."""

import time
from dataclasses import dataclass

import pytest

from sandbox.protocol import MEBIBYTE, CheckResult, Fixture, SessionLimits
from tests.sandbox.conftest import Opener

FIXTURES = [Fixture("/srv/list", b"b\na\n"), Fixture("/srv/want", b"a\nb\n"), Fixture("/srv/bad", b"x\n")]
BY_TMP = "sort ~/out > /tmp/got; sort /srv/want > /tmp/want; cmp /tmp/got /tmp/want"
BY_HOME = "sort ~/out > ~/got; sort /srv/want > ~/want; cmp ~/got ~/want"
BY_RELATIVE = "sort out > got; sort /srv/want > want; cmp got want"
BY_MKTEMP = "f=$(mktemp) || exit 1; diff ~/out /srv/want > $f; test ! -s $f"
BY_TMPDIR = "cd $TMPDIR; diff ~/out /srv/want > d; test ! -s d"
BY_DIFF = "diff ~/out /srv/want > /tmp/d; test ! -s /tmp/d"
BY_HOME_DIFF = "diff ~/out /srv/want > ~/d; test ! -s ~/d"
BY_TEXT = 'diff ~/out /srv/want > /tmp/d; test -z "$(cat /tmp/d)"'
BY_PID = "diff ~/out /srv/want > /tmp/d.$$; test ! -s /tmp/d.$$"
BY_FOLDER = "mkdir -p /tmp/c; diff ~/out /srv/want > /tmp/c/d; test ! -s /tmp/c/d"
BY_ADDING = "grep -x a ~/out >> /tmp/found; grep -qx a /tmp/found"
BY_VAR_TMP = "diff ~/out /srv/want > /var/tmp/d; test ! -s /var/tmp/d"
BY_CD = "cd /tmp; sort ~/out > got; sort /srv/want > want; cmp got want"
BY_TEE = "sort ~/out | tee ~/got > /dev/null; sort /srv/want | tee ~/want > /dev/null; cmp ~/got ~/want"
BY_UNPACKING = "mkdir -p {0}/c; tar -xf /srv/empty.tar -C {0}/c; diff -r {0}/c /opt/want"
BY_MOVING = "sort ~/out > ~/new; mv ~/new ~/a/got; sort /srv/want > ~/new; mv ~/new ~/b/got; cmp ~/a/got ~/b/got"
BY_COPYING = "cp /srv/list ~/a/got; cp /srv/want ~/b/got; cmp ~/a/got ~/b/got"
BY_ENTERING = "cd ~/a; sort ~/out > got; cd ~/b; sort /srv/want > got; cmp ~/a/got ~/b/got"
BY_INPUT = "sort /srv/want | cmp -s - ~/out"
BY_COMPUTED = 'for n in got want; do sort /srv/$n /srv/bad > "$(echo ~/$n)"; done 2>/dev/null; cmp ~/got ~/want'
BY_CLOSED = "cd e; for n in got want; do sort /srv/$n /srv/bad > $n; done 2>/dev/null; cmp ~/e/got ~/e/want"
FULL = "head -c 99000000 /dev/zero > {0}/fill; i=0; while echo x > {0}/f$i; do i=$((i+1)); done"
LAST_FILE = 'perl -e \'for my $i (0 .. 99999) {{ open(my $f, ">", "{0}/f$i") or last }}\''
WRONG = "cp /srv/bad out;"


@dataclass(frozen=True)
class Attempt:
    before: str
    checker: str


ATTEMPTS = {
    "/tmp full of bytes, sort": Attempt(FULL.format("/tmp"), BY_TMP),
    "/tmp full of bytes, diff": Attempt(FULL.format("/tmp"), BY_DIFF),
    "/tmp full of bytes, mktemp": Attempt(FULL.format("/tmp"), BY_MKTEMP),
    "/tmp full of bytes, $TMPDIR": Attempt(FULL.format("/tmp"), BY_TMPDIR),
    "/tmp full of files, sort": Attempt(LAST_FILE.format("/tmp"), BY_TMP),
    "/tmp full of files, mktemp": Attempt(LAST_FILE.format("/tmp"), BY_MKTEMP),
    "/tmp full in a file that is read": Attempt(FULL.format("/tmp"), f"test -e /tmp/fill; {BY_DIFF}"),
    "/var full of bytes": Attempt(FULL.format("/var"), BY_VAR_TMP),
    "/var full of files": Attempt(LAST_FILE.format("/var"), BY_VAR_TMP),
    "home full of bytes": Attempt(FULL.format("~"), BY_HOME_DIFF),
    "home full of bytes, sort": Attempt(FULL.format("~"), BY_HOME),
    "home full of files": Attempt(LAST_FILE.format("/home/agent"), BY_HOME_DIFF),
    "/tmp: one a link to the other": Attempt("ln -s /tmp/want /tmp/got", BY_TMP),
    "/tmp: links to one file": Attempt("ln -s /tmp/z /tmp/got; ln -s /tmp/z /tmp/want", BY_TMP),
    "/tmp: one file of two names": Attempt("echo x > /tmp/got; ln /tmp/got /tmp/want", BY_TMP),
    "/tmp: a link to the result": Attempt("ln -s ~/out /tmp/want", BY_TMP),
    "/tmp: a link to the right file": Attempt("ln -s /srv/want /tmp/got", BY_TMP),
    "/tmp: pipes": Attempt("mkfifo /tmp/got /tmp/want", BY_TMP),
    "/tmp: /dev/null": Attempt("ln -s /dev/null /tmp/got; ln -s /dev/null /tmp/want", BY_TMP),
    "/tmp: /dev/null for differences": Attempt("ln -s /dev/null /tmp/d", BY_DIFF),
    "/tmp: a file that cannot be written to": Attempt(": > /tmp/d; chmod 400 /tmp/d", BY_DIFF),
    "/tmp: a folder": Attempt("mkdir /tmp/d", BY_TEXT),
    "/tmp: a folder that is a file": Attempt(": > /tmp/c", BY_FOLDER),
    "/tmp: a folder that cannot be written to": Attempt("mkdir /tmp/c; chmod 500 /tmp/c", BY_FOLDER),
    "/tmp: itself cannot be written to": Attempt("chmod 500 /tmp", BY_DIFF),
    "/tmp: names with the process's number": Attempt(
        "i=0; while [ $i -lt 3000 ]; do ln -s /dev/null /tmp/d.$i; i=$((i+1)); done", BY_PID
    ),
    "/tmp: what is added to": Attempt("echo a > /tmp/found", BY_ADDING),
    "/tmp: by cd": Attempt("ln -s want /tmp/got", BY_CD),
    "/var/tmp: a file that cannot be written to": Attempt(": > /var/tmp/d; chmod 400 /var/tmp/d", BY_VAR_TMP),
    "/var/tmp: is a link": Attempt("rm -r /var/tmp; ln -s /proc /var/tmp", BY_VAR_TMP),
    "/var/tmp: cannot be reached": Attempt("chmod 0 /var", BY_VAR_TMP),
    "/var/tmp: is gone": Attempt("rm -r /var/tmp; chmod 500 /var", BY_VAR_TMP),
    "home: one a link to the other": Attempt("ln -s ~/want ~/got", BY_HOME),
    "home: one a link to the other, relative": Attempt("ln -s want got", BY_RELATIVE),
    "home: links to one file": Attempt("ln -s z got; ln -s z want", BY_HOME),
    "home: links to one file, tee": Attempt("ln -s z got; ln -s z want", BY_TEE),
    "home: a link to the result": Attempt("ln -s ~/out ~/want", BY_HOME),
    "home: one file of two names": Attempt("ln out want", BY_HOME),
    "home: pipes": Attempt("mkfifo got want", BY_HOME),
    "home: a file that cannot be written to": Attempt(": > d; chmod 400 d", BY_HOME_DIFF),
    "home: cannot be written to": Attempt("chmod 555 ~", BY_HOME_DIFF),
    "home: behind a link": Attempt(
        "mkdir /srv/e; chmod 500 /srv/e; ln -s /srv/e e", BY_HOME_DIFF.replace("~/d", "~/e/d")
    ),
    "home: links in a closed folder": Attempt("mkdir e; ln -s z e/got; ln -s z e/want; chmod 300 e", BY_CLOSED),
    "/tmp: an unpacked archive": Attempt(
        "tar -cf /srv/empty.tar -T /dev/null; mkdir -p /tmp/c /opt/want; echo x | tee /tmp/c/x > /opt/want/x",
        BY_UNPACKING.format("/tmp"),
    ),
    "home: an unpacked archive": Attempt(
        "tar -cf /srv/empty.tar -T /dev/null; mkdir -p ~/c /opt/want; echo x | tee ~/c/x > /opt/want/x",
        BY_UNPACKING.format("~"),
    ),
    "home: a link for a folder": Attempt("mkdir a; ln -s a b", BY_MOVING),
    "home: a link for a folder, copied into": Attempt("mkdir a; ln -s a b", BY_COPYING),
    "home: a link for a folder, with a slash": Attempt("mkdir a; ln -s a b", BY_COPYING.replace("/got", "/")),
    "home: a link for a folder, entered": Attempt("mkdir a; ln -s a b", BY_ENTERING),
    "home: a link for a folder, by another name": Attempt(
        "mkdir a; ln -s a b", BY_ENTERING.replace("cd ~/b", "cd ~/a/../b/.")
    ),
    "home: what is added to": Attempt("echo a > found", BY_ADDING.replace("/tmp/", "~/")),
    "/tmp: a folder that is copied into": Attempt(
        "mkdir t; cp out t/a; mkdir /tmp/got; cp /srv/want /tmp/got/a", "cp -r ~/t /tmp/got; cmp /tmp/got/a /srv/want"
    ),
    "/tmp: a folder that is moved into": Attempt(
        "mkdir t; cp out t/a; mkdir /tmp/got; cp /srv/want /tmp/got/a",
        "cp -r ~/t /tmp/t; mv /tmp/t /tmp/got; cmp /tmp/got/a /srv/want",
    ),
    "/tmp: a folder that is unpacked into": Attempt(
        "tar -cf t.tar out; mkdir /tmp/got; cp /srv/want /tmp/got/a",
        "[ -d /tmp/got ] || mkdir /tmp/got; tar -C /tmp/got -xf ~/t.tar; cmp /tmp/got/a /srv/want",
    ),
    "home: a folder that is copied into": Attempt(
        "mkdir t got; cp out t/a; cp /srv/want got/a", "cp -r ~/t ~/got; cmp ~/got/a /srv/want"
    ),
    "home: a folder that is linked into": Attempt(
        "mkdir t got; cp out t/a; cp /srv/want got/a", "ln -sf ~/t ~/got; cmp ~/got/a /srv/want"
    ),
    "home: a folder that is moved onto": Attempt(
        "mkdir got; cp /srv/want got/a", "mkdir ~/t; cp ~/out ~/t/a; mv -T ~/t ~/got; cmp ~/got/a /srv/want"
    ),
    "words that no program can be given": Attempt(
        "mkdir d; : > d/0x; perl -e 'for (1 .. 7950) { open(F, \">\", sprintf(\"d/%0254d\", $_)) or last }'",
        "! ls -d ~/d/* | grep -q x",
    ),
    "result: a link to the input": Attempt("ln -sf /dev/stdin out", BY_INPUT),
    "result: a link to the input, relative": Attempt("ln -sf ../../dev/stdin out", BY_INPUT),
    "result: a link to the input, in /proc": Attempt("ln -sf /proc/self/fd/0 out", BY_INPUT),
    "result: a link over links": Attempt("ln -s / root; ln -s root/dev here; ln -sf here/stdin out", BY_INPUT),
    "result: a link to the input, of a here document": Attempt(
        "ln -sf /dev/stdin out", "diff - ~/out > /dev/null << E\na\nb\nE"
    ),
    "result: a link to the descriptors": Attempt("ln -s /proc/self/fd d", "sort /srv/want | cmp -s - ~/d/0"),
    "result: a link to the words of a command": Attempt("ln -sf /proc/self/cmdline out", "grep -q a ~/out"),
    "result: a link to what is compared with it": Attempt(
        "ln -sf /tmp/want out", "sort /srv/want > /tmp/want; cmp -s /tmp/want ~/out"
    ),
    "result: a folder of what is compared with it": Attempt(
        "ln -s /tmp d", "sort /srv/want > /tmp/want; cmp -s /tmp/want ~/d/want"
    ),
    "home: names that are computed": Attempt("ln -s z got; ln -s z want", BY_COMPUTED),
    "home: names that only the checker makes": Attempt(
        "ln -s z got; ln -s z want",
        "for n in got want; do sort /srv/$n /srv/bad > ~/$n; done 2>/dev/null; cmp ~/got ~/want",
    ),
}  # fmt: skip


# Of each mechanism one; the others are the same on other paths.
USUAL = (
    "/tmp full of bytes, diff", "/tmp full of files, mktemp", "home full of bytes", "/tmp: one a link to the other",
    "/tmp: a folder that cannot be written to", "/tmp: an unpacked archive", "/var/tmp: is a link",
    "home: links to one file", "home: one file of two names", "home: a link for a folder", "home: what is added to",
    "home: names that only the checker makes", "/tmp: a folder that is copied into",
    "home: a folder that is copied into", "home: a folder that is linked into", "words that no program can be given",
    "result: a link to the input", "result: a link over links",
    "result: a link to what is compared with it", "result: a folder of what is compared with it",
)  # fmt: skip


def wrong(opened: Opener, name: str) -> CheckResult:
    disk = 64 if "words" in name else 16  # names that make words too long need many inodes
    session = opened(FIXTURES, limits=SessionLimits(check_seconds=2, disk=disk * MEBIBYTE))
    session.exec(f"{WRONG} {ATTEMPTS[name].before}", timeout=20)
    return session.check(ATTEMPTS[name].checker, terminal="exit")


class TestWrongState:
    @pytest.mark.parametrize("name", USUAL)
    def test_does_not_pass(self, opened: Opener, name: str) -> None:
        assert not wrong(opened, name).passed

    @pytest.mark.slow
    @pytest.mark.parametrize("name", [name for name in ATTEMPTS if name not in USUAL])
    def test_nor_on_other_paths(self, opened: Opener, name: str) -> None:
        assert not wrong(opened, name).passed

    @pytest.mark.parametrize(
        "before",
        [
            """perl -e 'for (1..40) { my $i = shmget(0, 8e6, 0600 | 512); shmwrite($i, "x" x 8e6, 0, 8e6) }'""",
            """perl -e 'for (1..40) { fork or do { my $x = "a" x 6e6; sleep 30 } } sleep 1'""",
            "i=0; while [ $i -lt 200 ]; do sleep 30 & i=$((i+1)); done",
        ],
        ids=["shared memory", "memory", "processes"],
    )  # fmt: skip
    def test_nor_after_everything_is_used_up(self, opened: Opener, before: str) -> None:
        session = opened(FIXTURES)
        session.exec(WRONG)
        session.exec(before, timeout=10)
        assert not session.check("! diff ~/out /srv/want | grep -q .", terminal="exit").passed
        assert session.check("cmp -s ~/out /srv/bad && sort /srv/want | grep -q a", terminal="exit").passed

    @pytest.mark.parametrize("size", ["1G", "1T"])
    def test_nor_by_what_takes_the_checkers_memory(self, opened: Opener, size: str) -> None:
        session = opened(FIXTURES, limits=SessionLimits(memory=32 * MEBIBYTE))
        session.exec(f"truncate -s {size} line")
        result = session.check("""! perl -0777 -ne 'exit !/x/' ~/line""", terminal="exit")
        assert (result.passed, result.exit_code) == (False, 125)

    def test_nor_by_what_fills_its_temporary_folder_meanwhile(self, opened: Opener) -> None:
        session = opened(FIXTURES)
        session.exec("truncate -s 60M zeros; gzip -c zeros > zeros.gz; rm zeros")
        checker = "zcat ~/zeros.gz > /tmp/z 2>/dev/null; n=$(stat -c %s /tmp/z); rm /tmp/z; test $n -lt 60000000"
        assert not session.check(checker, terminal="exit").passed


class TestRightState:
    """What honest agents leave changes no verdict."""

    def test_links_that_show_state_stay(self, opened: Opener) -> None:
        session = opened(FIXTURES)
        session.exec(
            "sort /srv/list > out; ln -s out current; ln -s /dev/null quiet; ln -s nowhere loose; ln -s loop loop;"
            "mkdir -p /opt/a; ln -s /opt/a a; ln -s ../../srv/want w;"
            "mkdir closed; ln -s /srv/want closed/w; chmod 0 closed"
        )
        checker = """
            cd; [ "$(readlink current)" = out ] && [ "$(readlink quiet)" = /dev/null ] && [ -L loose ] && [ -L loop ]
            [ $? = 0 ] && [ -d a ] && cmp -s w current && [ "$(stat -c %a closed)" = 0 ] && [ ! -s quiet ]
        """
        assert session.check(checker, terminal="exit").passed

    @pytest.mark.parametrize(
        "checker", [BY_TMP, BY_HOME, BY_RELATIVE, BY_MKTEMP, BY_TMPDIR, BY_DIFF, BY_HOME_DIFF, BY_TEXT, BY_PID,
                    BY_FOLDER, BY_ADDING, BY_VAR_TMP, BY_CD, BY_TEE],
    )  # fmt: skip
    @pytest.mark.parametrize(
        "besides",
        [
            "",
            "echo x > /tmp/got; echo y > /tmp/d; mkdir -p /tmp/c; echo x > got",
            "ln -s /srv current; ln -s out link; ln -s nowhere loose; ln out /opt/out 2>/dev/null; mkfifo pipe",
            FULL.format("/tmp"),
        ],
        ids=["nothing", "files of its own", "links of its own", "a full /tmp"],
    )  # fmt: skip
    def test_passes(self, opened: Opener, checker: str, besides: str) -> None:
        session = opened(FIXTURES, limits=SessionLimits(disk=16 * MEBIBYTE))
        session.exec(f"sort /srv/list > out; {besides}")
        result = session.check(checker, terminal="exit")
        assert result.passed, result.output

    @pytest.mark.parametrize(
        "checker",
        [
            "cat /tmp/x | grep -q yes",
            'test "$(cat "/tmp/x")" = yes',
            "f=/tmp/x; grep -q yes $f && rm $f",
            "need() { [ -s $1 ] || exit 1; }\nneed /tmp/x",
            "while read word; do test $word = yes || exit 1; done < /tmp/x && test -s /tmp/x",
            "cat /tmp/d/*.txt | grep -q yes",
            "grep -rq yes /tmp/d && test -L /tmp/link",
            "sort -o $TMPDIR/x /tmp/x && cmp $TMPDIR/x /var/tmp/x",
            "ls /tmp | grep -qx x",
        ],
    )
    def test_temporary_files_that_it_only_reads_are_there(self, opened: Opener, checker: str) -> None:
        session = opened()
        session.exec("mkdir /tmp/d; echo yes | tee /tmp/x /var/tmp/x > /tmp/d/1.txt; ln -s x /tmp/link")
        assert session.check(checker, terminal="exit").passed

    def test_the_next_check_finds_the_same_state(self, opened: Opener) -> None:
        session = opened()
        session.exec("echo yes > /tmp/x; chmod 444 /tmp/x; ln -s /tmp/x link; echo a > b; ln b c")
        for _ in range(3):
            checker = "stat -c %a /tmp/x; cat link c; echo z > /tmp/got; cat /tmp/got"
            assert session.check(checker, terminal="exit").output == "444\nyes\na\nz\n"

    def test_the_reason_is_said(self, opened: Opener) -> None:
        session = opened(FIXTURES)
        session.exec("cp /srv/bad out; ln -s z got; ln -s z want")
        result = session.check(BY_HOME, terminal="exit")
        assert (result.exit_code, result.output) == (
            125,
            "sh: the check does not count: /home/agent/got was there already\n",
        )

    def test_nothing_runs_after_a_check(self, opened: Opener) -> None:
        session = opened()
        ticks = [0, 0]
        for number in range(2):
            time.sleep(number / 2)
            ticks[number] = int(session.check("awk '{ print $14 + $15 }' /proc/1/stat", terminal="exit").output)
        assert ticks[1] - ticks[0] < 10
