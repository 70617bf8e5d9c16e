"""A filter in a form: an input for each of its fields, with the words of its list's filter bar."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import QueryDict
from django.template.loader import render_to_string
from django.utils.datastructures import MultiValueDict
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from curation.web.forms import PartError, PartsField
from curation.web.lists.filters import RowFilter, split_words
from curation.web.lists.pages import Choices
from curation.web.problems import Problem
from curation.web.text.figures import quoted

# The name of a field's checkboxes ends so: those that are checked are alternatives.
ANY = ".any"


@dataclass(frozen=True, slots=True)
class _Input:
    """One field of the filter: checkboxes if it has `choices`, else a text per value that must match."""

    id: str
    name: str
    label: str
    help: str
    values: tuple[str, ...]
    choices: Choices
    errors: tuple[str, ...]

    def render(self, focused: str) -> SafeString:
        """Return its label, inputs and errors; a page has some thirty of them. `focused` is the id with the focus."""
        focus = SafeString(" autofocus") if self.id == focused else ""
        shown = self._checks(focus) if self.choices else self._texts(focus)
        errors = format_html_join("", "<li>{}</li>", ((text,) for text in self.errors))
        listed = format_html('<ul class="errorlist" id="{}_errors">{}</ul>', self.id, errors) if self.errors else ""
        title = format_html(' title="{}"', self.help) if self.help else ""
        return format_html('<div class="filter-inputs__field"{}>{}{}</div>', title, shown, listed)

    def _checks(self, focus: str) -> SafeString:
        checked = SafeString(" checked")
        rows = [(self.name, value, checked if value in self.values else "", label) for value, label in self.choices]
        text = '<label class="check"><input type="checkbox" name="{}" value="{}"{}> {}</label>'
        return format_html(
            '<span id="{}" tabindex="-1"{}>{}</span> '
            '<span class="filter-inputs__choices" role="group" aria-labelledby="{}">{}</span>',
            *(self.id, focus, self.label, self.id, format_html_join("", text, rows)),
        )

    def _texts(self, focus: str) -> SafeString:
        first = format_html(' id="{}"{}', self.id, focus)
        further = format_html(' aria-label="{}"', self.label)
        wrong = format_html(' aria-invalid="true" aria-describedby="{}_errors"', self.id) if self.errors else ""
        text = '<input type="text"{} name="{}" value="{}"{} autocomplete="off" spellcheck="false">'
        rows = [(further if n else first, self.name, value, wrong) for n, value in enumerate(self.values)]
        return format_html('<label for="{}">{}</label> {}', self.id, self.label, format_html_join("", text, rows))


class _FilterInputs(forms.Widget):
    use_fieldset = True

    def __init__(self, filter: type[RowFilter]) -> None:
        super().__init__()
        self.filter = filter

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        attrs = attrs or {}
        given = MultiValueDict[str, str]()
        for field, text in _pairs(self.filter, value):
            given.appendlist(field, text)
        errors: dict[str, list[str]] = attrs.get("part_errors") or {}
        inputs: list[_Input] = []
        for field in dict.fromkeys([*self.filter.offered(), *given]):
            wrong = tuple(errors.get(field, ()))
            inputs.append(self._input(f"{attrs.get('id', name)}_{field}", name, field, given.getlist(field), wrong))
        first = next((one.id for one in inputs if one.errors), "")
        focused = first if attrs.get("autofocus") else ""
        shown = SafeString("".join(one.render(focused) for one in inputs))
        return {"inputs": shown, "is_open": bool(given or first), "is_empty": not given}

    def _input(self, id: str, name: str, field: str, given: list[str], errors: tuple[str, ...]) -> _Input:
        """Values that no checkboxes can show are shown as they were typed."""
        choices, values = self.filter.choices_of(field), tuple(given)
        if choices and len(given) <= 1:
            words = tuple(word for text in given for word in split_words(text))
            if {word for word, _ in choices}.issuperset(words):
                values = words
            else:
                choices = ()
        else:
            choices = ()
        info = self.filter.model_fields.get(field)
        return _Input(
            id=id,
            name=f"{name}.{field}{ANY if choices else ''}",
            label=self.filter.label_of(field),
            help=quoted(info.description or "") if info else "",
            values=values if choices else values or ("",),
            choices=choices,
            errors=errors,
        )

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        return render_to_string("_filter_inputs.html", self.get_context(name, value, attrs))

    def value_from_datadict(self, data: Any, files: Any, name: str) -> QueryDict:
        found = QueryDict(mutable=True)
        for field in self.filter.model_fields:
            found.setlist(field, data.getlist(f"{name}.{field}"))
            if checked := data.getlist(f"{name}.{field}{ANY}"):
                found.appendlist(field, ",".join(checked))
        return found

    def value_omitted_from_data(self, data: Mapping[str, Any], files: Any, name: str) -> bool:
        return not any(key.startswith(f"{name}.") for key in data)


class FilterField(PartsField):
    """A filter as JSON, `{"bucket": "refined"}`. Its errors name the field, as those of a list do."""

    def __init__(self, filter: type[RowFilter], **values: Any) -> None:
        super().__init__(widget=_FilterInputs(filter), **values)
        self.filter = filter

    @property
    def parts(self) -> Mapping[str, str]:
        return {name: self.filter.label_of(name) for name in self.filter.model_fields}

    def clean(self, value: QueryDict) -> dict[str, Any]:
        try:
            chosen = self.filter.from_query(value)
        except Problem as problem:
            raise forms.ValidationError(
                [
                    PartError(error.path, error.sentence()) if error.path in self.parts else error.sentence()
                    for error in problem.errors
                ]
            ) from None
        found: dict[str, Any] = {}
        for name in dict(chosen.pairs()):
            groups = getattr(chosen, name)
            found[name] = (
                [list(group) for group in groups] if isinstance(groups, tuple) else (value.get(name) or "").strip()
            )
        return found

    def has_changed(self, initial: Any, data: Any) -> bool:
        return _pairs(self.filter, initial) != _pairs(self.filter, data)


def _pairs(filter: type[RowFilter], value: Any) -> list[tuple[str, str]]:
    """Names and texts of the typed values, or of a filter's JSON."""
    if isinstance(value, QueryDict):
        return [(name, text) for name, texts in value.lists() for text in texts if text.strip()]
    return filter.from_json(value or {}).pairs()
