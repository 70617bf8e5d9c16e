"""Widgets of forms, rendered without templates: Django's include one template per option and per set of attributes."""

from collections.abc import Callable, Mapping
from typing import Any

from django.forms.renderers import DjangoTemplates
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

Widget = Mapping[str, Any]
_FOLDER = "django/forms/widgets"


class WidgetRenderer(DjangoTemplates):
    """Renders inputs, selects and text areas itself, and everything else by Django's templates."""

    def render(self, template_name: str, context: dict[str, Any], request: HttpRequest | None = None) -> str:
        render = _RENDERED.get(template_name)
        return render(context["widget"]) if render else super().render(template_name, context, request)


def _input(widget: Widget) -> SafeString:
    value = widget["value"]
    shown = "" if value is None else format_html(' value="{}"', value)
    return format_html('<input type="{}" name="{}"{}{}>', widget["type"], widget["name"], shown, _attributes(widget))


def _select(widget: Widget) -> SafeString:
    parts = [format_html('<select name="{}"{}>', widget["name"], _attributes(widget))]
    for group, options, _ in widget["optgroups"]:
        rows = [(option["value"], _attributes(option), option["label"]) for option in options]
        shown = format_html_join("", '<option value="{}"{}>{}</option>', rows)
        parts.append(format_html('<optgroup label="{}">{}</optgroup>', group, shown) if group else shown)
    return SafeString("".join([*parts, "</select>"]))


def _textarea(widget: Widget) -> SafeString:
    # A browser drops the first line break.
    return format_html(
        '<textarea name="{}"{}>\n{}</textarea>', widget["name"], _attributes(widget), widget["value"] or ""
    )


def _attributes(widget: Widget) -> SafeString:
    given = [(name, value) for name, value in widget["attrs"].items() if value is not False]
    return SafeString(
        "".join(
            format_html(" {}", name) if value is True else format_html(' {}="{}"', name, value) for name, value in given
        )
    )


_INPUTS = ("text", "number", "email", "url", "password", "hidden", "date", "datetime", "time", "checkbox", "file")
_RENDERED: dict[str, Callable[[Widget], SafeString]] = {
    **{f"{_FOLDER}/{kind}.html": _input for kind in _INPUTS},
    f"{_FOLDER}/select.html": _select,
    f"{_FOLDER}/textarea.html": _textarea,
}
