"""The axis `doc_depth`: how the provider is documented, as its programs answered in the sandbox."""

import re

from curation.scenarios.claims.evidence import FITS, BundleEvidence, Found, mismatch, text_of, told, unchecked
from sandbox.gate.documentation import Documentation


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
        return mismatch(f"the help refers to topics ({_some(found.topics)}), which is `layered`")
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


def _some(words: tuple[str, ...]) -> str:
    return ", ".join(f"`{word}`" for word in words[:3])
