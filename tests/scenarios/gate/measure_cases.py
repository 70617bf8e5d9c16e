"""Checkers that measure a result (its size, counts, times, names) where they should compare it, and sound ones beside
them over the same kinds of work."""

import hashlib

from tests.scenarios.gate.cases import ASKED, STAFF, Case

NUMBERS = "".join(f"{number}\n" for number in range(1, 20_001))
MANY = "".join(f"{number}\n" for number in range(1, 400_001))
NAMES = "bram\nida\nolga\nyusuf\n"
BOX = {f"/srv/box/{name}": f"{name}\n" for name in ("a.tmp", "b.tmp", "c.txt", "d.tmp", "e.txt")}
KEYS = {f"/srv/keys/{name}": f"{name}\n" for name in ("ida.key", "bram.key", "olga.pub", "yusuf.pub")}
TO_NAMES = "cut -d, -f1 /srv/staff.csv | tail -n +2 | sort > names.txt\n"
SUMS = TO_NAMES + "sha256sum names.txt > SUMS"
FLAGS = "mkdir flags\ntouch flags/ida flags/olga"
CLEAN = "rm /srv/box/*.tmp"
LOCK = "chmod 600 /srv/keys/*.key"
LINK = "ln -s /srv/releases/2 current"
RELEASES = {"/srv/releases/1/v": "1\n", "/srv/releases/2/v": "2\n"}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _hashed(path: str, digest: str) -> str:
    return ASKED + f'[ "$(sha256sum < {path})" = "{digest}  -" ]'


MEASURED = [
    Case("size of a large file", "seq 1 20000 > big.txt", ASKED + f'[ "$(wc -c < big.txt)" -eq {len(NUMBERS)} ]'),
    Case(
        "lines and size of a larger file",
        "seq 1 400000 > all.txt",
        ASKED + f'[ "$(wc -l < all.txt)" -eq 400000 ] && [ "$(wc -c < all.txt)" -eq {len(MANY)} ]',
    ),
    Case("at least so large", "seq 1 400000 > all.txt", ASKED + '[ "$(stat -c %s all.txt)" -gt 1000000 ]'),
    Case("size of a binary file", "head -c 512 /dev/zero > disk.img", ASKED + '[ "$(stat -c %s disk.img)" = 512 ]'),
    Case(
        "first bytes of a binary file",
        "gzip -c /srv/staff.csv > staff.gz",
        ASKED + '[ "$(head -c 2 staff.gz | od -An -tx1 | tr -d \' \')" = 1f8b ] && [ "$(wc -c < staff.gz)" -gt 20 ]',
        {"/srv/staff.csv": STAFF},
    ),
    Case(
        "sum of a column",
        "cut -d, -f3 /srv/staff.csv | tail -n +2 | sort -n > hours.txt",
        ASKED + "awk '{s+=$1} END{exit !(s==27 && NR==4)}' hours.txt",
        {"/srv/staff.csv": STAFF},
    ),
    Case("count of empty files", FLAGS, ASKED + '[ "$(ls flags | wc -l)" -eq 2 ]'),
    Case(
        "count of folders",
        "mkdir -p out/red out/blue out/green",
        ASKED + '[ "$(find out -mindepth 1 -type d | wc -l)" -eq 3 ]',
    ),
    Case("count of what is left", CLEAN, ASKED + '[ "$(ls /srv/box | wc -l)" -eq 2 ]', BOX),
    Case("count of private files", LOCK, ASKED + '[ "$(find /srv/keys -perm 600 | wc -l)" -eq 2 ]', KEYS),
    Case("last name of a link", LINK, ASKED + '[ "$(basename "$(readlink current)")" = 2 ]', RELEASES),
    Case(
        "the result's own checksum",
        SUMS,
        ASKED + '[ "$(wc -l < names.txt)" -eq 4 ] && sha256sum -c SUMS > /dev/null',
        {"/srv/staff.csv": STAFF},
    ),
    Case(
        "newer than its source",
        "sort /srv/staff.csv > sorted.csv",
        ASKED + '[ sorted.csv -nt /srv/staff.csv ] && [ "$(wc -l < sorted.csv)" -eq 5 ]',
        {"/srv/staff.csv": STAFF},
    ),
    Case(
        "names in a large archive",
        "seq 1 30000 > numbers.txt\ntar -cf pack.tar numbers.txt\nrm numbers.txt",
        ASKED + '[ "$(tar -tf pack.tar)" = numbers.txt ]',
    ),
]

COMPARED = [
    Case("a large file by its hash", "seq 1 20000 > big.txt", _hashed("big.txt", _digest(NUMBERS))),
    Case("a larger file by its hash", "seq 1 400000 > all.txt", _hashed("all.txt", _digest(MANY))),
    Case(
        "a binary file byte by byte",
        "head -c 512 /dev/zero > disk.img",
        ASKED + "head -c 512 /dev/zero | cmp -s - disk.img",
    ),
    Case(
        "hours as they are",
        "cut -d, -f3 /srv/staff.csv | tail -n +2 | sort -n > hours.txt",
        ASKED + "[ \"$(tr '\\n' ' ' < hours.txt)\" = '3 5 7 12 ' ]",
        {"/srv/staff.csv": STAFF},
    ),
    Case(
        "empty files by name",
        FLAGS,
        ASKED + "[ \"$(find flags -type f -empty | sort | tr '\\n' ' ')\" = 'flags/ida flags/olga ' ]",
    ),
    Case(
        "what is left by name and text",
        CLEAN,
        ASKED + "[ \"$(cd /srv/box && ls && cat *)\" = 'c.txt\ne.txt\nc.txt\ne.txt' ]",
        BOX,
    ),
    Case(
        "private files by name",
        LOCK,
        ASKED
        + "[ \"$(cd /srv/keys && find . -perm 600 | sort | tr '\\n' ' ')\" = './bram.key ./ida.key ' ] || exit 1\n"
        "[ \"$(cat /srv/keys/bram.key /srv/keys/ida.key | tr '\\n' ' ')\" = 'bram.key ida.key ' ] || exit 1\n"
        "unchanged --except /srv/keys/bram.key /srv/keys/ida.key /var",
        KEYS,
    ),
    Case("a link's whole target", LINK, ASKED + '[ "$(readlink current)" = /srv/releases/2 ]', RELEASES),
    Case(
        "names and their checksum",
        SUMS,
        _hashed("names.txt", _digest(NAMES)) + f' && [ "$(cat SUMS)" = "{_digest(NAMES)}  names.txt" ]',
        {"/srv/staff.csv": STAFF},
    ),
]
