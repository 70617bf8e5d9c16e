"""The evidence that a claimed axis is compared with, and the findings of the comparison."""

import bz2
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from django.db import models

from curation.scenarios.bundles.document import Bundle, setup_of
from sandbox.gate.documentation import Documentation
from sandbox.gate.provider import programs_of
from sandbox.gate.state import StateChange
from sandbox.protocol import Fixture

_MAN_HEADING = re.compile(
    r"(?m)^(?:NAME|SYNOPSIS|DESCRIPTION|OPTIONS|COMMANDS|FILES|EXAMPLES?|NOTES|SEE ALSO|EXIT STATUS|BUGS|ENVIRONMENT"
    r"|AUTHORS?)\s*$"
)
# How terminals and printers make letters bold.
_BOLD = re.compile(r".\x08|\x1b\[[0-9;]{0,20}m")
_MAN_PATH = re.compile(r"/man/|/man\d/|\.[1-9](?:\.gz|\.bz2|\.xz)?$")
# The source of a page, in the macros of man or of mdoc: its title, and a section; or the section that names it.
_MAN_SOURCE = re.compile(r"(?ms)^[.']\s*(?:TH|Dt)\s+\S.*^[.']\s*S[Hh]\s+\S|^[.']\s*S[Hh]\s+\"?NAME\b")
# What opens a packed page, by how it begins.
_PACKED: Mapping[bytes, Callable[[io.BytesIO], io.BufferedIOBase]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\0": lzma.LZMAFile,
}
MAX_PAGE = 1024 * 1024


class ClaimFinding(models.TextChoices):
    FITS = "fits", "Fits"
    MISMATCH = "mismatch", "Mismatch"
    UNCHECKED = "unchecked", "Unchecked"

    @property
    def tone(self) -> str:
        return {"fits": "good", "mismatch": "bad"}.get(self.value, "muted")


# A finding and its reason; the reason of a value that fits may be empty.
Found = tuple[ClaimFinding, str]
FITS: Found = (ClaimFinding.FITS, "")


def mismatch(reason: str) -> Found:
    return ClaimFinding.MISMATCH, reason


def unchecked(reason: str) -> Found:
    return ClaimFinding.UNCHECKED, reason


@dataclass(frozen=True, slots=True)
class BundleEvidence:
    """A bundle with the gate's observations of it.

    `changes` is None if the state is not known, `documentation` if the programs were not called.
    """

    bundle: Bundle
    documentation: Documentation | None = None
    changes: Mapping[str, StateChange] | None = None

    @property
    def fixtures(self) -> list[Fixture]:
        return list(setup_of(self.bundle).fixtures)

    @property
    def programs(self) -> list[Fixture]:
        """The provider's programs."""
        return programs_of(self.fixtures, told(self.bundle))

    @property
    def pages(self) -> list[Fixture]:
        """Files that look like manual pages."""
        return [file for file in self.texts if _is_page(file)]

    @property
    def texts(self) -> list[Fixture]:
        return [file for file in self.fixtures if not file.content.startswith(b"#!")]

    @property
    def data(self) -> list[Fixture]:
        """Files that are neither programs nor manual pages nor the announcement."""
        return [file for file in self.texts if not _is_page(file) and not file.path.endswith("/NOTICE")]


def told(bundle: Bundle) -> str:
    """The texts that lead to the provider."""
    return f"{bundle.announcement.text}\n{bundle.provider.name}\n{bundle.provider.doc}"


def text_of(file: Fixture) -> str:
    """The text of a file; a packed file is unpacked."""
    unpack = next((unpack for magic, unpack in _PACKED.items() if file.content.startswith(magic)), None)
    if unpack is None:
        return file.content.decode(errors="replace")
    try:
        with unpack(io.BytesIO(file.content)) as packed:
            return packed.read(MAX_PAGE).decode(errors="replace")
    except (OSError, EOFError, zlib.error, lzma.LZMAError):
        return ""


def _is_page(file: Fixture) -> bool:
    text = _BOLD.sub("", text_of(file))
    headings = len(set(_MAN_HEADING.findall(text)))
    return bool(_MAN_SOURCE.search(text)) or headings > 1 or (headings == 1 and bool(_MAN_PATH.search(file.path)))
