"""Render Markdown that people or models wrote as safe HTML."""

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore


def _lower_headings(state: StateCore) -> None:
    """Lower each heading by a level: the page itself has the only `h1`."""
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1:]) + 1)}"


_markdown = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
_markdown.core.ruler.push("lower_headings", _lower_headings)
# No images: a page must not load from other hosts. No ids and classes: they could clash with the page's own.
TAGS = {
    *("a", "blockquote", "br", "code", "em", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s"),
    *("strong", "table", "tbody", "td", "th", "thead", "tr", "ul"),
}
ATTRIBUTES = {"a": {"href", "title"}}


def markdown_html(text: str) -> SafeString:
    """CommonMark with tables; raw HTML is shown as text, links are http, https or mailto and get `rel=noopener`."""
    html = nh3.clean(
        _markdown.render(text),
        tags=TAGS,
        attributes=ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return mark_safe(html)  # noqa: S308 - nh3 has removed everything that is not in the lists above
