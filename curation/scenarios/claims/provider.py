"""The axes `provider` and `doc_depth`: how directives are served and documented, as far as fixtures and the provider's
programs show it."""

import re
from collections.abc import Iterator

from curation.scenarios.claims.evidence import FITS, BundleEvidence, Found, mismatch, text_of, told, unchecked
from judging.shell.words import tokens
from sandbox.gate.documentation import Documentation

_FIFO = re.compile(r"\bmkfifo\b|\bmknod\s+\S+\s+p\b")
_HEADERS = re.compile(r"(?m)^(?:From|To|Subject|Date|Reply-To|Message-ID): ")
_MAIL_PATH = re.compile(r"(?i)(?:^|/)\.?(?:e?mail|maildir|mbox|mailbox)(?=[/\s\"'}]|$)")
_TARGETS = re.compile(r"(?i)\btargets?\b|\bmakefile\b|\bprerequisites?\b")
_STAGES = re.compile(r"(?i)\b(?:stages?|goals?)\b")
_ORDER = re.compile(r"(?i)\b(?:holds?|needs?|depends?|before|after)\b")
_RULE = re.compile(r"(?m)^[\w./-]+:(?: [\w ./-]*)?\n[ \t]+\S")
_FOLDER = re.compile(r"/\"?\*|\bls\b|\bfind\b")
_REWRITES = re.compile(r"\bmv \"?(\S+?)\.\w+\"? \"?\1\"?$")
_LINES = re.compile(r"\b(?:awk|sed|grep|head|tail|cut|sort|read)\b")
_ASSIGNED = re.compile(r"(?m)^\s*([A-Za-z_]\w*)=[\"']?(/[^\s\"';]+)")
# With fewer, a word may be there in passing.
OFTEN = 3


def check_provider(value: str, evidence: BundleEvidence) -> Found | None:
    """Compare the claim with what serves the directives. Of several ways the most special one counts."""
    reader = _READERS.get(value)
    if reader is None:
        return None
    code = [text_of(file) for file in evidence.programs]
    if not code:
        return _without_program(value)
    shown = {kind for kind, shows in _READERS.items() if shows(evidence, code)}
    special = next((kind for kind in ("fifo", "mailbox", "make") if kind in shown), "")
    if special and value != special and (special != "make" or not _names_targets_in_passing(evidence, code)):
        return mismatch(f"the provider {_SAYS[special]}, which is `{special}`")
    if value not in shown:
        return mismatch(f"nothing shows that the provider {_SAYS[value]}")
    plain = [kind for kind in ("script", "queue-file", "spool") if kind in shown]
    if value not in plain or plain == ["script"]:
        return FITS
    named = [kind for kind in plain if re.search(rf"(?i)\b{kind.split('-')[0]}\b", "\n".join(code))]
    if value in named and value != "script":
        return FITS
    if value == "script" and {"queue-file", "spool"} & set(named):
        return mismatch(f"the provider {_SAYS[named[-1]]} and calls it so, which is `{named[-1]}`")
    others = ", ".join(f"`{kind}`" for kind in plain if kind != value)
    return unchecked(f"it could be {others} too")


def _without_program(value: str) -> Found:
    if value in ("queue-file", "spool", "mailbox"):
        return unchecked("there is no program among the fixtures that the announcement or the provider names")
    return mismatch("there is no program among the fixtures, so nothing can serve directives in this way")


def _is_script(evidence: BundleEvidence, code: list[str]) -> bool:
    return bool(code)


def _is_fifo(evidence: BundleEvidence, code: list[str]) -> bool:
    return any(_FIFO.search(line) for text in code for line in executed(text))


def _is_mailbox(evidence: BundleEvidence, code: list[str]) -> bool:
    if any(_MAIL_PATH.search(word) for text in code for line in executed(text) for word in line.split()):
        return True
    letters = [file for file in evidence.data if len(set(_HEADERS.findall(text_of(file)))) > 1]
    return any(file.path.rsplit("/", 2)[-2] in text for file in letters for text in code)


def _is_make(evidence: BundleEvidence, code: list[str]) -> bool:
    return bool(_TARGETS.search("\n".join(code))) or _has_rules(evidence, code)


def _has_rules(evidence: BundleEvidence, code: list[str]) -> bool:
    """Whether a file has rules like a makefile's, or the program has stages in an order."""
    text = "\n".join(code)
    rules = any(_RULE.search(text_of(file)) and file.path.rsplit("/", 1)[1] in text for file in evidence.data)
    return rules or (len(_STAGES.findall(text)) >= OFTEN and bool(_ORDER.search(text)))


def _names_targets_in_passing(evidence: BundleEvidence, code: list[str]) -> bool:
    return not _has_rules(evidence, code) and len(_TARGETS.findall("\n".join(code))) < OFTEN


def _is_spool(evidence: BundleEvidence, code: list[str]) -> bool:
    """Jobs are files of a folder, and the program moves or removes them."""
    lines = [line for text in code for line in executed(text)]
    moves = [line for line in lines if re.match(r"(?:mv|rm)\b", line) and not _REWRITES.search(line)]
    return bool(moves) and any(_FOLDER.search(_without_comments(text)) for text in code)


def _is_queue_file(evidence: BundleEvidence, code: list[str]) -> bool:
    """One file that the program reads line by line, or that it calls a queue."""
    for text in code:
        bare = _without_comments(text)
        if re.search(r"(?i)\bqueue\b\"?=|\$\{?queue\b|/queue\b|\.queue\b", bare):
            return True
        paths = {file.path for file in evidence.data}
        names = {name for name, path in _ASSIGNED.findall(bare) if path in paths}
        for line in executed(text):
            named = any(path in line for path in paths) or any(re.search(rf"\$\{{?{name}\b", line) for name in names)
            if named and _LINES.match(line):
                return True
    return False


_READERS = {
    "script": _is_script,
    "mailbox": _is_mailbox,
    "spool": _is_spool,
    "make": _is_make,
    "queue-file": _is_queue_file,
    "fifo": _is_fifo,
}
_SAYS = {
    "script": "is a script",
    "mailbox": "reads a mailbox",
    "spool": "takes jobs out of a folder",
    "make": "has targets or stages",
    "queue-file": "reads a file of directives line by line",
    "fifo": "makes a named pipe",
}


def _without_comments(text: str) -> str:
    return re.sub(r"(?m)^\s*#.*$", "", text)


def executed(text: str) -> Iterator[str]:
    """The simple commands of a script as written, with simple variables filled in; not the texts that it prints."""
    known = dict(_ASSIGNED.findall(text))
    start: int | None = None
    end = 0
    for token in [*tokens(text), None]:
        if token is not None and token.kind == "word":
            start = token.start if start is None else start
            end = token.end
            continue
        if token is not None and token.kind == "body":
            continue
        if start is not None:
            line = re.sub(r"\$\{?(\w+)\}?", lambda m: known.get(m[1], m[0]), text[start:end])
            line = re.sub(r"^(?:(?:then|do|else|elif|if|while|until|!|\{)\s+)+", "", line)
            if not re.match(r"(?:echo|printf)\b", line):
                yield line
        start = None


def check_documentation(value: str, evidence: BundleEvidence) -> Found | None:
    if value not in _CHECKS:
        return None
    if evidence.documentation is None:
        return unchecked("the provider's programs were not called")
    if not evidence.programs and value != "man-page":
        return unchecked("there is no program among the fixtures that the announcement or the provider names")
    return _CHECKS[value](evidence.documentation, _page(evidence))


def _help(found: Documentation, page: str) -> Found:
    if not found.helps:
        return mismatch("no program of the provider answers `--help`, `help` or `-h` with a text of its own")
    if found.topics:
        topics = ", ".join(f"`{topic}`" for topic in found.topics[:3])
        return mismatch(f"the help refers to topics ({topics}), which is `layered`")
    return unchecked(f"besides the help there is the page {page}") if page else FITS


def _usage_error(found: Documentation, page: str) -> Found:
    if found.helps:
        return mismatch(f"`{found.helps[0]}` prints help, so a wrong call is not the only documentation")
    if not found.usages:
        return mismatch("a wrong call of the provider fails without printing the usage")
    return mismatch(f"there is the page {page}, which is `man-page`") if page else FITS


def _man_page(found: Documentation, page: str) -> Found:
    if page:
        return FITS
    return mismatch("no fixture is a page like those of man that the provider, the announcement or the reference names")


def _layered(found: Documentation, page: str) -> Found:
    if found.topics:
        return FITS
    if found.helps:
        return mismatch(f"`{found.helps[0]}` names no topic that can be read")
    return mismatch("no program of the provider answers `help` or `--help`, so no help refers to a topic")


_CHECKS = {"help": _help, "usage-error": _usage_error, "man-page": _man_page, "layered": _layered}


def _page(evidence: BundleEvidence) -> str:
    """The manual page that somebody names, by its path, its file name, or the name before the section."""
    bundle = evidence.bundle
    scripts = "\n".join(text_of(file) for file in evidence.fixtures if file.content.startswith(b"#!"))
    texts = f"{told(bundle)}\n{bundle.reference_solution}\n{scripts}"
    for page in evidence.pages:
        name = page.path.rsplit("/", 1)[1]
        stem = re.escape(re.sub(r"\.(?:gz|bz2|xz)\Z", "", name).rsplit(".", 1)[0])
        if name in texts or re.search(rf"\bman\s+(?:\d\s+)?{stem}\b|\b{stem}\(\d\)", texts):
            return page.path
    return ""
