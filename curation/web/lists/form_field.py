"""A filter in a form: an input for each of its fields, in the words of the lists' URLs."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.http import QueryDict
from django.template.loader import render_to_string
from django.utils.datastructures import MultiValueDict
from django.utils.safestring import SafeString

from curation.web.lists.filters import RowFilter, field_words
from curation.web.problems import Problem


class _FilterInputs(forms.Widget):
    """One text input per field, and one more for each further value that must also match."""

    use_fieldset = True

    def __init__(self, filter: type[RowFilter]) -> None:
        super().__init__()
        self.filter = filter

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        given = MultiValueDict[str, str]()
        for field, text in _pairs(self.filter, value):
            given.appendlist(field, text)
        inputs = [
            {
                "name": f"{name}.{field}",
                "label": field_words(field),
                "values": given.getlist(field) or [""],
                "help": info.description or "",
                "allowed": self.filter.allowed_words(field),
            }
            for field, info in self.filter.model_fields.items()
            if field not in self.filter.beside
        ]
        return {"inputs": inputs, "is_empty": not given}

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        return render_to_string("_filter_inputs.html", self.get_context(name, value, attrs))

    def value_from_datadict(self, data: Any, files: Any, name: str) -> QueryDict:
        found = QueryDict(mutable=True)
        for field in self.filter.model_fields:
            found.setlist(field, data.getlist(f"{name}.{field}"))
        return found

    def value_omitted_from_data(self, data: Mapping[str, Any], files: Any, name: str) -> bool:
        return not any(key.startswith(f"{name}.") for key in data)


class FilterField(forms.Field):
    """A filter as JSON, `{"bucket": "refined"}`. What it refuses it names by field, as a list does."""

    def __init__(self, filter: type[RowFilter], **values: Any) -> None:
        super().__init__(widget=_FilterInputs(filter), **values)
        self.filter = filter

    def clean(self, value: QueryDict) -> dict[str, Any]:
        try:
            chosen = self.filter.from_query(value)
        except Problem as problem:
            raise forms.ValidationError([f"“{error.path}”: {error.sentence()}" for error in problem.errors]) from None
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
    """Names and texts of what was typed, or of a filter's JSON."""
    if isinstance(value, QueryDict):
        return [(name, text) for name, texts in value.lists() for text in texts if text.strip()]
    return filter.from_json(value or {}).pairs()
