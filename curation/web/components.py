"""Small parts that stand many times on a page, as template tags. Including a template takes longer than a query."""

from datetime import datetime

from django import template
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()
NOTHING = SafeString('<span class="muted">–</span>')


@register.simple_tag
def badge(word: object, tone: str = "", *, solid: bool = False, title: object = "") -> SafeString:
    """Return a word with a tone: `good`, `bad`, `borderline`, `attention`, `accent`, or none."""
    classes = f"badge{f' badge--{tone}' if tone else ''}{' badge--solid' if solid else ''}"
    if title:
        return format_html('<span class="{}" title="{}">{}</span>', classes, title, word)
    return format_html('<span class="{}">{}</span>', classes, word)


@register.simple_tag
def time(at: datetime | None, punctuation: str = "") -> SafeString:
    """Return a moment in UTC, which the page's script shows as the time that has passed; a dash for None."""
    if not at:
        return format_html("{}{}", NOTHING, punctuation)
    return format_html(
        '<time datetime="{}" data-relative title="{} UTC">{}</time>{}',
        *(at.isoformat(), f"{at:%Y-%m-%d %H:%M:%S}", f"{at:%Y-%m-%d %H:%M}", punctuation),
    )


@register.simple_tag
def icon(name: str, size: str = "") -> SafeString:
    """Return an icon of `static/icons.svg`. `size`: `s`, `l`, or none."""
    classes = f"icon icon--{size}" if size else "icon"
    return format_html(
        '<svg class="{}" aria-hidden="true" focusable="false"><use href="{}#{}"></use></svg>',
        *(classes, static("icons.svg"), name),
    )
