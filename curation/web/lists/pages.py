"""The common parts of list pages: their rows with the links to other pages, tabs, filter fields, chips, sortable
columns. Fields are template tags, since including a template takes longer than a query."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TypeVar

from django import template
from django.db.models import Model
from django.http import HttpRequest, QueryDict
from django.utils.safestring import SafeString

from curation.web.lists.filters import ListParams, words_of
from curation.web.lists.keyset import KeysetPage

register = template.Library()
M = TypeVar("M", bound=Model)
Choices = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Tab:
    label: str
    url: str
    current: bool


@dataclass(frozen=True, slots=True)
class FilterControl:
    """A field of the filter form. `options` are (value, label) of a select; `more` are the further values of a repeated
    parameter, sent as hidden inputs."""

    name: str
    label: str
    value: str
    options: Choices = ()
    more: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chip:
    """One condition of the filter, and the list without it. `raw` is its value in the URL."""

    name: str
    raw: str
    label: str
    value: str
    without_url: str


@dataclass(frozen=True, slots=True)
class SortColumn:
    """A column that sorts the list; `aria_sort` is empty while it does not."""

    label: str
    url: str
    aria_sort: str = ""


def list_context(
    request: HttpRequest, params: ListParams, page: KeysetPage[M], api_path: str, *, path: str = ""
) -> dict[str, object]:
    """The context of a list's template: `rows`, the parameters, chips, links to other pages and the REST call.

    `path` is the list's, where the request is not for it, such as a form that was refused.
    """
    return {
        "rows": page.rows,
        "params": params,
        "chips": chips(path or request.path, params),
        "list_url": path or request.path,
        "api_path": params.url(api_path),
        **page_urls(path or request.path, params, page.next_cursor),
    }


def page_urls(path: str, params: ListParams, next_cursor: str | None) -> dict[str, str | None]:
    """`newer_url` leads to the first page, `older_url` to the next one."""
    return {
        "newer_url": params.url(path) if params.cursor else None,
        "older_url": params.url(path, cursor=next_cursor) if next_cursor else None,
    }


def tabs(path: str, params: ListParams, name: str, choices: Iterable[tuple[str, str]]) -> tuple[Tab, ...]:
    """One tab per value of a field, and one for all; the rest of the filter stays."""
    current = ",".join(params.texts_of(name))
    return (
        Tab("All", params.url(path, **{name: None}), not current),
        *(Tab(label, params.url(path, **{name: value}), value == current) for value, label in choices),
    )


def controls(
    labels: Mapping[str, str], sent: QueryDict, options: Mapping[str, Choices] | None = None
) -> dict[str, FilterControl]:
    """The fields of the filter form with the values that were sent, even if they were refused."""
    fields = {}
    for name, label in labels.items():
        value, *more = sent.getlist(name) or [""]
        allowed = (options or {}).get(name, ())
        extra = [(value, words_of(value, allowed))] if allowed and value and value not in dict(allowed) else []
        fields[name] = FilterControl(name, label, value, (*allowed, *extra), tuple(more))
    return fields


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


def chips(path: str, params: ListParams) -> tuple[Chip, ...]:
    """One for each condition."""
    return tuple(
        Chip(
            name, value, params.label_of(name).lower(), params.words_of(name, value), params.url_without(path, position)
        )
        for position, (name, value) in enumerate(params.pairs())
    )


def column(path: str, params: ListParams, name: str, label: str, *, same_order: str = "") -> SortColumn:
    """Largest first; a second click reverses the order, if the list has both. `same_order`: a sort that equals it."""
    sort = params.sort or params.sorts[0]
    current, down = sort.removeprefix("-") in (name, same_order), sort.startswith("-")
    following = name if (current and down) or f"-{name}" not in params.sorts else f"-{name}"
    aria = ("descending" if down else "ascending") if current else ""
    return SortColumn(label, params.url(path, sort=following), aria)
