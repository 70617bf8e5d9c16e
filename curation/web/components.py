"""Small parts that stand many times on a page, as template tags. Including a template takes longer than a query."""

from datetime import datetime
from functools import cache
from html import escape

from django import template
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString

from curation.web.lists.pages import FilterControl

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
    end = conditional_escape(punctuation)
    if not at:
        return SafeString(f"{NOTHING}{end}")
    whole = at.isoformat()
    shown = f"{whole[:10]} {whole[11:16]}"
    title = f"{shown}{whole[16:19]} UTC"
    return SafeString(f'<time datetime="{whole}" data-relative title="{title}">{shown}</time>{end}')


@register.simple_tag
def filter_text(control: FilterControl | None, kind: str, placeholder: str) -> SafeString:
    """Return a text input of a filter, and the further values of its parameter; nothing without a control.

    `kind` is the input's type: `text`, `search` or `number`.
    """
    if not control:
        return SafeString("")
    name, bounds = escape(control.name), ' min="0" max="100" step="any"' if kind == "number" else ""
    return SafeString(
        f'<input type="{kind}" id="filter-{name}" name="{name}" value="{escape(control.value)}" '
        f'placeholder="{escape(placeholder)}" aria-label="{escape(control.label)}" autocomplete="off" '
        f'spellcheck="false"{bounds}>{_further_values(control) if control.more else ""}'
    )


@register.simple_tag
def filter_select(control: FilterControl | None, nothing: str) -> SafeString:
    """Return a select of a filter; `nothing` is its word for no condition. Nothing without a control."""
    if not control:
        return SafeString("")
    name, options = escape(control.name), f'<option value="">{escape(nothing)}</option>'
    for value, label in control.options:
        selected = " selected" if value == control.value else ""
        options += f'<option value="{escape(value)}"{selected}>{escape(label)}</option>'
    return SafeString(
        f'<select id="filter-{name}" name="{name}" aria-label="{escape(control.label)}">{options}</select>'
        f"{_further_values(control) if control.more else ''}"
    )


def _further_values(control: FilterControl) -> str:
    name = escape(control.name)
    return "".join([f'<input type="hidden" name="{name}" value="{escape(value)}">' for value in control.more])


@register.simple_tag
@cache
def fixed(name: str) -> SafeString:
    """Return a template that needs no context, rendered once in a process."""
    return render_to_string(name)


@register.simple_tag
@cache
def icon(name: str, size: str = "") -> SafeString:
    """Return an icon of `static/icons.svg`. `size`: `s`, `l`, or none."""
    classes, href = escape(f"icon icon--{size}" if size else "icon"), escape(f"{static('icons.svg')}#{name}")
    return SafeString(f'<svg class="{classes}" aria-hidden="true" focusable="false"><use href="{href}"></use></svg>')
