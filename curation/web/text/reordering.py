"""Characters that change the order in which text is read (Unicode's bidirectional controls), visible in every page.

Names that people type, and names in files and of models, may contain them: `report⟨U+202E⟩fdp.exe` looks as if it ended
in another way. The texts of a page are changed where they are sent, not the values of its fields: they are sent back.
"""

import re

from curation.web.text.markup import with_signs

REORDERING = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_CHARACTERS = re.compile(f"[{REORDERING}]+")
# Elements that are data, tags, and the text between them.
_PIECE = re.compile(r"<(textarea|script|style)\b.*?</\1>|<[^>]*>|[^<]+", re.DOTALL)
# Attributes that people read: of HTML, and those that scripts show.
_READ = r"title|alt|aria-label|placeholder|data-(?:kept|key-label|missing|panel-title|why-not)"
_READ_OUT = re.compile(rf'(?<![\w-])(?:{_READ})="[^"]*"')


def page_with_signs(html: str) -> str:
    """Return a page with visible signs in place of them in its texts."""
    return _PIECE.sub(_shown, html)


def without_reordering(text: str) -> str:
    """Return a text with visible signs in their place."""
    return _CHARACTERS.sub(lambda found: with_signs(found[0]), text)


def _shown(piece: re.Match[str]) -> str:
    if piece[1]:
        return piece[0]
    if piece[0].startswith("<"):
        return _READ_OUT.sub(lambda found: without_reordering(found[0]), piece[0])
    return without_reordering(piece[0])
