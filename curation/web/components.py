"""Small parts that stand many times on a page, as template tags. Including a template takes longer than a query."""

from datetime import datetime
from functools import cache

from django import template
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.utils.safestring import SafeString

from curation.web.lists.pages import Control
from curation.web.text.escape import escaped, format_html, format_html_join

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
    whole = at.isoformat()
    shown = f"{whole[:10]} {whole[11:16]}"
    title = f"{shown}{whole[16:19]} UTC"
    end = escaped(punctuation)
    return SafeString(f'<time datetime="{whole}" data-relative title="{title}">{shown}</time>{end}')


@register.simple_tag
def filter_text(control: Control | None, kind: str, placeholder: str) -> SafeString:
    """Return a text input of a filter, and the further values of its parameter; nothing without a control.

    `kind` is the input's type: `text`, `search` or `number`.
    """
    if not control:
        return SafeString("")
    return format_html(
        '<input type="{}" id="filter-{}" name="{}" value="{}" placeholder="{}" aria-label="{}" autocomplete="off" '
        'spellcheck="false"{}>{}',
        *(kind, control.name, control.name, control.value, placeholder, control.label),
        SafeString(' min="0" max="100" step="any"' if kind == "number" else ""),
        _further_values(control),
    )


@register.simple_tag
def filter_select(control: Control | None, nothing: str) -> SafeString:
    """Return a select of a filter; `nothing` is its word for no condition. Nothing without a control."""
    if not control:
        return SafeString("")
    selected = SafeString(" selected")
    options = [(value, selected if value == control.value else "", label) for value, label in control.options]
    return format_html(
        '<select id="filter-{}" name="{}" aria-label="{}"><option value="">{}</option>{}</select>{}',
        *(control.name, control.name, control.label, nothing),
        format_html_join("", '<option value="{}"{}>{}</option>', options),
        _further_values(control),
    )


def _further_values(control: Control) -> SafeString:
    return format_html_join(
        "", '<input type="hidden" name="{}" value="{}">', ((control.name, value) for value in control.more)
    )


@register.simple_tag
@cache
def fixed(name: str) -> SafeString:
    """Return a template that needs no context, rendered once in a process."""
    return render_to_string(name)


@register.simple_tag
@cache
def icon(name: str, size: str = "") -> SafeString:
    """Return an icon of `static/icons.svg`. `size`: `s`, `l`, or none."""
    classes = f"icon icon--{size}" if size else "icon"
    return format_html(
        '<svg class="{}" aria-hidden="true" focusable="false"><use href="{}#{}"></use></svg>',
        *(classes, static("icons.svg"), name),
    )
