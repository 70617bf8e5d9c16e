"""Forms that are made of a schema: a field of a request is declared once.

A field whose type does not say all of it names its form field: `Annotated[str, forms.ChoiceField(choices=…)]`.
"""

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from types import new_class
from typing import Any, ClassVar, Generic, Literal, TypeVar, cast, get_args, get_origin

from django import forms
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from curation.web.forms import ProblemForm
from curation.web.problems import Invalid
from curation.web.text.figures import quoted

S = TypeVar("S", bound=BaseModel)


class SchemaForm(ProblemForm, Generic[S]):
    """The form of `schema`: a label is the field's title, a help text its description. Fields that the form declares
    come first, unless `field_order` places them. `choices` are those that depend on the project."""

    schema: ClassVar[type[BaseModel]]

    def __class_getitem__(cls, schema: Any) -> Any:
        return new_class(f"{schema.__name__}Form", (cls,), exec_body=lambda body: body.update(schema=schema))

    def __init__(self, *args: Any, choices: Mapping[str, Iterable[tuple[str, str]]] | None = None, **kw: Any) -> None:
        super().__init__(*args, **kw)
        for name, info in self.schema.model_fields.items():
            field = field_of(info, None if info.is_required() else info.get_default(call_default_factory=True))
            if choices and name in choices:
                offered = forms.ChoiceField(choices=list(choices[name]))
                offered.__dict__ |= {one: getattr(field, one) for one in ("required", "label", "help_text", "initial")}
                field = offered
            self.fields[name] = field
        self.order_fields(self.field_order)

    def body(self) -> S:
        """Return the request that a script would send. Raises `Invalid`."""
        given = {name: self.cleaned_data[name] for name in self.schema.model_fields if name in self.cleaned_data}
        try:
            body = self.schema.model_validate({name: value for name, value in given.items() if value not in (None, "")})
        except ValidationError as error:
            raise Invalid.of(error) from None
        return cast(S, body)

    @classmethod
    def initial_of(cls, row: object | None) -> dict[str, Any]:
        """Return the values of a row; the form of a new one has the defaults."""
        return {} if row is None else dict(cls.schema.model_validate(row))


class LinesField(forms.CharField):
    """A list of texts, one per line."""

    widget = forms.Textarea(attrs={"rows": 4})

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        return [line.strip() for line in str(value or "").splitlines() if line.strip()]


class MappingField(forms.CharField):
    """A dictionary, one `name = value` per line. `pattern` shows a line's form in the error message."""

    widget = forms.Textarea(attrs={"rows": 3, "class": "mono"})

    def __init__(self, pattern: str, read: Callable[[str], Any], show: Callable[[Any], str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._pattern, self._read, self._show = pattern, read, show

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return "\n".join(f"{name} = {self._show(inner)}" for name, inner in value.items())

    def to_python(self, value: Any) -> Any:
        found: dict[str, Any] = {}
        for line in str(value or "").splitlines():
            if not line.strip():
                continue
            name, _, text = (part.strip() for part in line.partition("="))
            try:
                if not name or not text or name in found:
                    raise ValueError(line)
                found[name] = self._read(text)
            except ValueError:
                noun = self._pattern.split()[0]
                message = f"“{line.strip()}” must have the form {self._pattern}, each {noun} once."
                raise forms.ValidationError(message) from None
        return found


def _mapping_field(kind: Any, **kwargs: Any) -> MappingField:
    """The field for a dictionary, by the type of its values: lists of words, texts or numbers."""
    values = get_args(kind)[1]
    if get_origin(values) is list:
        return MappingField("axis = value, value", _words, ", ".join, **kwargs)
    plain = get_args(values)[0] if hasattr(values, "__metadata__") else values
    if plain is str:
        return MappingField("name = text", str, str, **kwargs)
    return MappingField("dimension = number", float, "{:g}".format, **kwargs)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _words_of(info: FieldInfo) -> list[str]:
    extra = info.json_schema_extra
    found = extra.get("x-words") if isinstance(extra, dict) else None
    return [str(word) for word in found] if isinstance(found, list) else []


def plain_type(kind: Any) -> Any:
    """Return the type without None, and without its rules."""
    if type(None) in get_args(kind):
        kind = next(one for one in get_args(kind) if one is not type(None))
    return get_args(kind)[0] if hasattr(kind, "__metadata__") else kind


def field_of(info: FieldInfo, value: Any) -> forms.Field:
    shown: dict[str, Any] = {"label": info.title or None, "help_text": quoted(info.description or ""), "initial": value}
    if own := next((deepcopy(one) for one in info.metadata if isinstance(one, forms.Field)), None):
        own.__dict__ |= {name: own.__dict__[name] or shown[name] for name in shown}
        return own
    kind, needed = plain_type(info.annotation), info.is_required()
    if get_origin(kind) is Literal:
        words = get_args(kind)
        return forms.TypedChoiceField(
            choices=list(zip(words, _words_of(info) or map(str, words), strict=True)),
            coerce=lambda given: next(word for word in words if str(word) == given),
            required="" not in words,
            **shown,
        )
    if kind is bool:
        return forms.BooleanField(required=False, **shown)
    if get_origin(kind) is list:
        return LinesField(required=needed, **shown)
    if get_origin(kind) is dict:
        return _mapping_field(kind, required=needed, **shown)
    if kind is float:
        return forms.FloatField(widget=forms.NumberInput(attrs={"step": "any"}), **shown)
    if kind is int:
        return forms.IntegerField(required=info.default is not None, **shown)
    return forms.CharField(required=needed, **shown)
