"""Escape values and fill them into HTML, in a quarter of the time of Django's `format_html`.

Django's functions also take texts that are translated later, which Winnow has none of. A page has some two thousand
values.
"""

import html
from collections.abc import Iterable, Sequence

from django.utils.safestring import SafeString


def escaped(value: object) -> SafeString:
    """Return the value as HTML; a `SafeString` is HTML already."""
    return value if isinstance(value, SafeString) else SafeString(html.escape(str(value)))


def format_html(text: str, /, *args: object, **kwargs: object) -> SafeString:
    """Return `text.format(*args, **kwargs)` with escaped values."""
    return SafeString(text.format(*map(_html, args), **{name: _html(value) for name, value in kwargs.items()}))


def format_html_join(separator: str, text: str, rows: Iterable[Sequence[object]]) -> SafeString:
    """Return `text`, formatted with each row's escaped values, with the separator, which is HTML, in between."""
    return SafeString(separator.join([text.format(*map(_html, row)) for row in rows]))


def _html(value: object) -> str:
    return value if isinstance(value, SafeString) else html.escape(str(value))
