"""How much a packed source may become: a few kilobytes can unpack to more than any disk or memory."""

from dataclasses import dataclass, field

from django.conf import settings

from curation.imports.sources.rows import SourceError

# Below this nobody's disk is in danger, and short files of equal rows pack extremely well.
UNCHECKED_RATIO = 64 * 1024 * 1024
MB = 1024 * 1024


@dataclass(slots=True)
class UnpackLimit:
    """Counts unpacked bytes against `MAX_UNPACKED_MB`, and against `MAX_UNPACK_RATIO` times the `packed` bytes.

    `counted` are those of earlier reads. `imported` is the message's sentence about the rows before the limit.
    """

    packed: int
    counted: int = 0
    most: int = field(default_factory=lambda: settings.MAX_UNPACKED_BYTES)
    imported: str = "Nothing of it is imported."

    def add(self, size: int) -> None:
        """Count `size` bytes more. Raises `SourceError` with the limit that is exceeded."""
        self.counted += size
        if self.counted > self.most:
            raise SourceError(
                f"Unpacked, the source has more than {self.most // MB} MB (MAX_UNPACKED_MB). {self.imported} "
                "Split it, or ask the operator to raise MAX_UNPACKED_MB."
            )
        if self.counted > max(UNCHECKED_RATIO, settings.MAX_UNPACK_RATIO * self.packed):
            raise SourceError(
                f"Unpacked, the source has more than {settings.MAX_UNPACK_RATIO} times its size (MAX_UNPACK_RATIO), as "
                f"decompression bombs have. {self.imported} If the file is safe, unpack it first, or ask the "
                "operator to raise MAX_UNPACK_RATIO."
            )
