"""The axis `task`: what there is to do, as far as the reference's changes, its commands and the fixtures show it."""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from curation.scenarios.claims.evidence import FITS, BundleEvidence, Found, mismatch, text_of, unchecked
from curation.scenarios.claims.provider import executed
from sandbox.gate.state import StateChange

NOTHING_TO_DO = ("empty-queue", "blocked")
MANY = 3
_PACKS = re.compile(
    r"(?m)(?:^|[\s;&|(`])(?:tar|gzip|gunzip|zip|unzip|bzip2|bunzip2|xz|unxz|zcat|cpio|pax|ar|zstd|unzstd|mv|uudecode)\b"
)
_ARCHIVE = re.compile(r"\.(?:tar|tgz|gz|zip|bz2|xz|zst|cpio|7z|a)$|\.tar\.\w+$")
_CHMODS = re.compile(r"\b(?:chmod|setfacl|install\s+-\w*m|umask|chgrp|chown|cp\s+-\w*p)\b")
_CONFIG_NAME = re.compile(
    r"(?i)\.(?:conf|cfg|ini|env|toml|ya?ml|json|properties|rc|cnf|config|desktop|service|tab)$"
    r"|(?:^|/)(?:\.\w+rc|\.?(?:config|settings|setup|options|hosts|fstab|crontab))$|/etc/|/conf(?:ig)?(?:\.d)?/"
)
_SETTING = re.compile(r"(?m)^[;#]?\s*[\w.-]+\s*[=:]\s*\S*.*$|^\[[^\]\n]+\]$")
_LOG_PATH = re.compile(r"(?i)\blogs?\b|\.log\b|\bjournal\b|\bsyslog\b|\bmessages\b|\baccess[._]|\btrace\b|\baudit\b")
_TIMED = re.compile(r"(?m)^\W*(?:\d{4}-\d\d-\d\d|\d\d:\d\d|[A-Z][a-z]{2} [ \d]\d \d\d:)")


class _Seen(NamedTuple):
    """The paths that the reference changed, by kind of change. `inputs` are data that the provider's programs do not
    read."""

    made: list[str]
    edited: list[str]
    removed: list[str]
    modes: list[str]
    inputs: list[str]
    changes: Mapping[str, StateChange]
    evidence: BundleEvidence

    @property
    def written(self) -> list[str]:
        return self.made + self.edited


def check_task(value: str, evidence: BundleEvidence) -> Found | None:
    """Compare the claim with the reference's run. What could be another task too is said to be unchecked."""
    if value not in _CHECKS:
        return None
    ends = evidence.bundle.expected_terminal
    if (value == "blocked") != (ends == "panic"):
        return mismatch(f"the scenario ends in `{ends}`; only a blocked task ends in `panic`, and it always does")
    if evidence.changes is None:
        return unchecked("what the reference changed is not known")
    if value not in NOTHING_TO_DO and not evidence.changes:
        return mismatch("the reference changes nothing but the provider's own traces, so there is nothing to do")
    return _CHECKS[value](_seen(evidence, evidence.changes))


def _seen(evidence: BundleEvidence, changes: Mapping[str, StateChange]) -> _Seen:
    made, edited, removed, modes = [], [], [], []
    for path, change in changes.items():
        if change.after is None:
            removed.append(path)
        elif change.after.kind != "folder" and (change.before is None or change.before.kind == "folder"):
            made.append(path)
        elif change.after.kind != "folder" and not change.only_mode:
            edited.append(path)
        if change.before is not None and change.after is not None and change.before.mode != change.after.mode:
            modes.append(path)
    code = "\n".join(line for file in evidence.programs for line in executed(text_of(file)))
    inputs = [file.path for file in evidence.data if not _is_served(file.path, code)]
    return _Seen(made, edited, removed, modes, inputs, changes, evidence)


def _is_served(path: str, code: str) -> bool:
    """Whether the code of the provider's programs names a data file or its folder as a whole word."""
    folder, name = path.rsplit("/", 1)
    words = [
        re.escape(path),
        re.escape(folder),
        rf"[\w}}]/{re.escape(folder.rsplit('/', 1)[1])}(?=/)",
        rf"[\w}}\"]/{re.escape(name)}",
    ]
    return any(re.search(rf"{word}(?![\w.-])", code) for word in words)


def _file_edit(seen: _Seen) -> Found:
    if len(seen.written) != 1 or seen.removed:
        return mismatch(f"one file is to be written or changed; the reference {_did(seen)}")
    if _is_archive(seen, seen.written[0]):
        return mismatch(f"the reference writes an archive, {seen.written[0]}")
    if seen.made and seen.inputs:
        return unchecked("the reference writes a new file beside others; it may be made from their text")
    return FITS


def _text_transform(seen: _Seen) -> Found:
    if not seen.inputs:
        return mismatch("there is no text to transform: every file of data is the provider's own")
    if not any(_is_text(seen, path) for path in seen.made):
        return mismatch(f"text is to be written into another file; the reference {_did(seen)}")
    return FITS


def _search_and_report(seen: _Seen) -> Found:
    if len(seen.inputs) < MANY:
        return mismatch(f"something is to be found among many files; there are {len(seen.inputs)} to search")
    if not any(_is_text(seen, path) for path in seen.written):
        return mismatch(f"what is found is to be written down; the reference {_did(seen)}")
    return FITS


def _archive(seen: _Seen) -> Found:
    archives = [path for path in seen.changes if _is_archive(seen, path)]
    unpacked = any(_ARCHIVE.search(path) for path in seen.inputs)
    moved = bool(seen.removed) and bool(seen.made)
    if archives or ((unpacked or moved) and _PACKS.search(seen.evidence.bundle.reference_solution)):
        return FITS
    return mismatch(f"files are to be packed, unpacked or moved; the reference {_did(seen)}")


def _permissions(seen: _Seen) -> Found:
    if seen.modes and _CHMODS.search(seen.evidence.bundle.reference_solution):
        return FITS
    return mismatch(f"modes are to be set; the reference {_did(seen)}, and changes no mode of what was there")


def _config_change(seen: _Seen) -> Found:
    files = [path for path in seen.edited if _is_config(seen, path)]
    if not files:
        return mismatch(f"a configuration file is to be changed; the reference {_did(seen)}")
    if set(seen.changes) - set(files):
        return mismatch(f"nothing but the configuration is to be changed; the reference {_did(seen)}")
    return FITS


def _log_analysis(seen: _Seen) -> Found:
    logs = [file for file in seen.evidence.data if file.path in seen.inputs and _is_log(file.path, text_of(file))]
    if not logs:
        return mismatch("there is no log among the fixtures")
    if not any(_is_text(seen, path) for path in seen.written):
        return mismatch(f"what the logs say is to be written down; the reference {_did(seen)}")
    return FITS


def _cleanup(seen: _Seen) -> Found:
    if not seen.removed:
        return mismatch(f"something is to be removed; the reference {_did(seen)}")
    return unchecked(f"the reference {_did(seen)}") if seen.written else FITS


def _multi_step(seen: _Seen) -> Found:
    if len(seen.written) > 1:
        return FITS
    if seen.written and seen.removed:
        return unchecked(f"the reference {_did(seen)}, which may be one directive")
    return mismatch(f"several directives depend on each other; the reference only {_did(seen)}")


def _empty_queue(seen: _Seen) -> Found:
    return FITS if not seen.changes else mismatch(f"nothing is to be done; the reference {_did(seen)}")


def _blocked(seen: _Seen) -> Found:
    return unchecked("whether the directive is impossible cannot be told; the scenario ends in `panic`")


_CHECKS: Mapping[str, Callable[[_Seen], Found]] = {
    "file-edit": _file_edit,
    "text-transform": _text_transform,
    "search-and-report": _search_and_report,
    "archive": _archive,
    "permissions": _permissions,
    "config-change": _config_change,
    "log-analysis": _log_analysis,
    "cleanup": _cleanup,
    "multi-step": _multi_step,
    "empty-queue": _empty_queue,
    "blocked": _blocked,
}


def _did(seen: _Seen) -> str:
    parts = [("writes", seen.made), ("changes", seen.edited), ("removes", seen.removed), ("sets modes of", seen.modes)]
    said = [
        f"{verb} {paths[0]}{f' and {len(paths) - 1} more' if len(paths) > 1 else ''}" for verb, paths in parts if paths
    ]
    return ", ".join(said) or "writes no file"


def _is_text(seen: _Seen, path: str) -> bool:
    after = seen.changes[path].after
    return after is not None and after.kind == "file" and (after.text is not None or after.data is None)


def _is_archive(seen: _Seen, path: str) -> bool:
    after = seen.changes[path].after
    data = after.data if after is not None and after.kind == "file" else b""
    return bool(data is not None and (_ARCHIVE.search(path) and data) or not _is_plain(data))


def _is_plain(data: bytes | None) -> bool:
    return data is None or b"\0" not in data and not data.startswith((b"\x1f\x8b", b"PK", b"BZh", b"\xfd7zXZ"))


def _is_config(seen: _Seen, path: str) -> bool:
    before = seen.changes[path].before
    lines = (before.text or "").strip().splitlines() if before else []
    settings = sum(bool(_SETTING.match(line)) for line in lines)
    return bool(_CONFIG_NAME.search(path)) or (len(lines) > 0 and settings * 2 > len(lines))


def _is_log(path: str, text: str) -> bool:
    lines = [line for line in text.splitlines() if line.strip()]
    return bool(_LOG_PATH.search(path)) or (len(lines) > 1 and len(_TIMED.findall(text)) * 2 > len(lines))
