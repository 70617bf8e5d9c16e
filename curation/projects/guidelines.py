"""Guidelines: Markdown that people wrote, made into HTML that cannot harm."""

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

_markdown = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
# No images: a page must not fetch from other hosts. No ids and classes: text must not take the page's own.
TAGS = {
    *("a", "blockquote", "br", "code", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s"),
    *("strong", "table", "tbody", "td", "th", "thead", "tr", "ul"),
}
ATTRIBUTES = {"a": {"href", "title"}}


def guidelines_html(text: str) -> SafeString:
    """CommonMark with tables; raw HTML shows as text, links are http, https or mailto and carry `rel=noopener`."""
    html = nh3.clean(
        _markdown.render(text),
        tags=TAGS,
        attributes=ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return mark_safe(html)  # noqa: S308 - nh3 has removed everything that is not in the lists above
