"""A file of a scenario on its page."""

from dataclasses import dataclass

from django.utils.html import format_html
from django.utils.safestring import SafeString

from curation.web.text.markup import code_html, render_output, visible

FOLD_FROM_BYTES = 2000


@dataclass(frozen=True, slots=True)
class FixtureView:
    """A file of the bundle. `html` is None if it is not text."""

    path: SafeString
    mode: str
    size: int
    html: SafeString | None
    open: bool


def fixture_view(path: str, mode: str, data: bytes) -> FixtureView:
    text = _as_text(data)
    html = None
    if text is not None and text.startswith("#!"):
        html = format_html('<pre class="code"><code>{}</code></pre>', code_html(text))
    elif text is not None:
        html = render_output(text)
    return FixtureView(visible(path), mode, len(data), html, len(data) <= FOLD_FROM_BYTES)


def _as_text(data: bytes) -> str | None:
    if b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
