"""Signatures by which two bundles are the same scenario under other names of variables, files and people.

Compared are the announcement, the fixtures in any order, and the reference solution. In every window of `WINDOW` words
names, paths and numbers are replaced by their order of appearance; the shell's words and function words stay.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from judging.likeness.groups import minima_of
from judging.shell.words import word_set

# Raise it with every change of the signature's input: stored signatures of another version are made again.
VERSION = 1
WINDOW = 6
# With fewer windows, one changed word is most of the bundle: such bundles are only compared as a whole.
MIN_WINDOWS = 40
_WORDS = re.compile(r"(?:~|\.{1,2})?(?:/[\w.@%+*?-]+)+/?|\d+|[^\W\d]\w*|[^\s\w]")
_NAME = re.compile(r"[\w~]|\.{0,2}/[\w.]")
_KEPT = word_set(
    """
    if then else elif fi for while until do done case esac in function return exit panic shift set local export read
    test true false echo printf cat ls cp mv rm mkdir rmdir ln chmod chown touch find grep egrep fgrep sed awk sort uniq
    head tail wc cut tr tee xargs tar gzip gunzip zip unzip cksum md5sum sha256sum stat date sleep kill mkfifo basename
    dirname cmp diff comm join paste seq expr cd pwd env eval exec trap wait sh
    a an and are as at be been but by each every for from has have if in into is it its must no none not of on one only
    or other out so some than that the their them then there these they this to two was were what when where which who
    with
    END BEGIN NR FNR NF FS OFS RS print substr index split length toupper tolower gsub sub match
    usage help all first last line lines file files name names number write
    """
)


class CopySignature(NamedTuple):
    """`exact`: 8 bytes of a digest over the whole; `near`: the minima over its windows, empty for a short bundle."""

    exact: bytes
    near: bytes


def copy_signature(document: Mapping[str, Any]) -> CopySignature:
    parts = [_WORDS.findall(text) for text in _texts(document)]
    whole = hashlib.blake2b("\0".join(sorted(_without_names(part) for part in parts)).encode(), digest_size=8)
    windows = {window for part in parts for window in _windows(part)}
    return CopySignature(whole.digest(), minima_of(windows) if len(windows) >= MIN_WINDOWS else b"")


def _texts(document: Mapping[str, Any]) -> Iterator[str]:
    """The texts of a bundle; of a Harbor task all its files but for the one with its name."""
    if document.get("family") == "harbor":
        yield from (_data(file) for file in document["files"] if file["path"] != "task.toml")
        return
    yield document["announcement"]["text"]
    yield document["reference_solution"]
    for file in document.get("fixtures", []):
        yield _data(file)


def _data(file: Mapping[str, Any]) -> str:
    return file.get("content") or file.get("base64") or ""


def _windows(words: Sequence[str]) -> Iterator[str]:
    for start in range(max(1, len(words) - WINDOW + 1)):
        yield _without_names(words[start : start + WINDOW])


def _without_names(words: Sequence[str]) -> str:
    numbers: dict[str, int] = {}
    return " ".join(
        str(numbers.setdefault(word, len(numbers))) if word not in _KEPT and _NAME.match(word) else word
        for word in words
    )
