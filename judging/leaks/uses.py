"""Names that a patch only uses and that nothing shows to be the repository's own: a programmer may know them.

`Cache::lock(…)`, `Process.send_after(…)` and `assert_receive` in a test belong to a library or a language, whichever it
is. `total = quantize_minor(…)`, `self.pending` and all that the patch defines, assigns or imports is the repository's.
"""

import re
from collections.abc import Iterator, Set
from enum import IntEnum

# So much of a line says what stands before a name.
_BEFORE = 80
_NAME = re.compile(r"[A-Za-z_$][\w$]{2,100}")
_ACCESS = re.compile(r"([$@\w]*)[)\]}!?]{0,3}(?:\.|::|->|\?\.)$")
_DEFINES = re.compile(
    r"\b(?:def|defp|defmodule|class|function|func|fun|fn|struct|enum|interface|trait|type|const|let|var|val|module|record"
    r"|object|namespace)\s+(?:\([^)\n]*\)\s*)?(?:[\w<>]+(?:\.|::|:))*$"
)
_ASSIGNED = re.compile(r"\s*(?::=|=(?![=>~]))")
_IMPORTS = re.compile(r"\s*(?:from|import|use|using|require\w*|include|alias|export|package|#include)\b")
_USES_LIBRARY = re.compile(r"\s*use\s+[A-Z]\w+(?:,|$)")
# Where a call of a test may stand; after another word, the name is that of a method which the test defines.
_TEST_CALL = re.compile(r"(?:^\s*|[(\[{,=!&|@]\s*|\b(?:new|return|await|yield|assert|expect|and|or|not)\s+)$")
_OWN_RECEIVERS = frozenset({"self", "this", "$this", "cls", "super", "static", "parent", "crate", ""})
_GO_RECEIVER = re.compile(r"\bfunc\s+\((\w+)\s")


class Use(IntEnum):
    """How sure it is that a name is not the repository's own, over all its places."""

    OWN = 0
    METHOD = 1
    FOREIGN = 2


def uses_of(lines: Iterator[tuple[str, bool]], own: Set[str], holders: Set[str]) -> dict[str, Use]:
    """Return the lowest use of each name in a patch's lines, each with whether it is in a test file.

    A method of a value of an unknown type is `METHOD`. `own` are names that are the repository's in any case, `holders`
    its modules and types.
    """
    found: dict[str, Use] = {}
    receivers = _OWN_RECEIVERS | holders
    for line, is_test in lines:
        receivers |= set(_GO_RECEIVER.findall(line))
        # `use GenServer` of Elixir; modules of a project have a name before them.
        imports = _IMPORTS.match(line) is not None and _USES_LIBRARY.match(line) is None
        for match in _NAME.finditer(line):
            name = match[0]
            if found.get(name) == Use.OWN:
                continue
            use = Use.OWN if imports or name in own else _use(line, match, receivers, is_test)
            found[name] = min(use, found.get(name, use))
    return found


def _use(line: str, match: re.Match[str], receivers: Set[str], is_test: bool) -> Use:
    before, after = line[max(0, match.start() - _BEFORE) : match.start()], line[match.end() : match.end() + 3]
    if _DEFINES.search(before) or _ASSIGNED.match(after):
        return Use.OWN
    called = after.startswith(("(", "!("))
    if access := _ACCESS.search(before):
        receiver = access[1]
        if receiver in receivers:
            # A call in a chain has no receiver of its own: `).should()`.
            return Use.METHOD if called and not receiver and before[-2:-1] in ")]}" else Use.OWN
        if receiver[0].isupper() or before[: access.start(1)].endswith(":"):
            return Use.FOREIGN
        return Use.METHOD if called else Use.OWN
    # An annotation of Java or TypeScript; one of Python is a function like any other.
    if match[0][0].isupper() and (before.endswith("@") or before.strip() == "use"):
        return Use.FOREIGN
    if match[0][0].isupper() and after.startswith((".", "::")):
        return Use.FOREIGN
    if is_test and after.startswith(("(", "!", " ")) and _TEST_CALL.search(before):
        return Use.FOREIGN
    return Use.OWN
