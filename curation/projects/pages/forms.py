"""Forms of the projects pages. The settings form is made from `ProjectSettings`: a new setting has its field."""

from typing import Any, Literal, get_args, get_origin

from django import forms
from pydantic.fields import FieldInfo

from curation.projects.models import Role, Scope
from curation.projects.settings.document import ProjectSettings, Section
from curation.projects.settings.patch import Json, flat
from curation.web.problems import Problem

SEPARATOR = "__"  # `thresholds.final` is the field `thresholds__final`


class ProjectForm(forms.Form):
    name = forms.CharField(max_length=120, widget=forms.TextInput(attrs={"autofocus": True}))
    slug = forms.RegexField(
        r"^[a-z0-9][a-z0-9-]*$",
        max_length=60,
        help_text="Lower-case letters, digits and hyphens; it stands in every address.",
        error_messages={"invalid": "Lower-case letters, digits and hyphens, not a hyphen first."},
    )


class GeneralForm(forms.Form):
    name = forms.CharField(max_length=120)
    guidelines = forms.CharField(
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 14, "class": "mono", "spellcheck": "true"}),
        help_text="What reviewers go by, in Markdown.",
    )
    version = forms.IntegerField(widget=forms.HiddenInput)


class MemberForm(forms.Form):
    username = forms.CharField(max_length=150, widget=forms.TextInput(attrs={"autocomplete": "off"}))
    role = forms.ChoiceField(choices=Role.choices, initial=Role.REVIEWER)


class TokenForm(forms.Form):
    name = forms.CharField(max_length=80, required=False, help_text="What it is for.")
    scopes = forms.MultipleChoiceField(
        choices=Scope.choices, widget=forms.CheckboxSelectMultiple, initial=[Scope.READ], help_text="What it may do."
    )
    expires_in_days = forms.IntegerField(
        min_value=1, max_value=3650, initial=90, required=False, label="Expires in days"
    )


class TomlForm(forms.Form):
    toml = forms.CharField(
        required=False,
        strip=False,
        label="TOML",
        widget=forms.Textarea(attrs={"rows": 8, "class": "mono", "spellcheck": "false"}),
    )
    file = forms.FileField(required=False, label="or a file")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        upload = cleaned.get("file")
        if upload is not None:
            try:
                cleaned["toml"] = upload.read(1_000_000).decode("utf-8")
            except UnicodeDecodeError:
                self.add_error("file", "The file is not UTF-8 text.")
        if not self.errors and not cleaned.get("toml", "").strip():
            self.add_error("toml", "Paste the file or choose one.")
        return cleaned


class InstructionsForm(forms.Form):
    text = forms.CharField(
        strip=False, widget=forms.Textarea(attrs={"rows": 28, "class": "mono", "spellcheck": "false"})
    )
    version = forms.IntegerField(widget=forms.HiddenInput)


class SettingsForm(forms.Form):
    """One field per setting. `patch()` gives what differs from the settings the form was made with."""

    version = forms.IntegerField(widget=forms.HiddenInput)

    def __init__(self, settings: ProjectSettings, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.before = flat(settings)
        for path, value in self.before.items():
            self.fields[path.replace(".", SEPARATOR)] = _field(_info(path), value)

    def sections(self) -> list[tuple[str, str, list[forms.BoundField]]]:
        """(title, what it is about, fields) per section, for fieldsets."""
        rows = []
        for name, info in ProjectSettings.model_fields.items():
            about = _plain((info.annotation.__doc__ or "").strip()) if info.annotation else ""
            bound = [self[field] for field in self.fields if field.startswith(f"{name}{SEPARATOR}")]
            rows.append((name.capitalize(), about, bound))
        return rows

    def patch(self) -> dict[str, Json]:
        patch: dict[str, Json] = {}
        for path, before in self.before.items():
            after = self.cleaned_data[path.replace(".", SEPARATOR)]
            if after == before:
                continue
            section, key = path.split(".")
            inner = patch.setdefault(section, {})
            if isinstance(inner, dict):
                inner[key] = after
        return patch

    def refuse(self, problem: Problem) -> None:
        """Puts each reason under its field, and what belongs to none on top."""
        for error in problem.errors:
            field = error.path.removeprefix("settings.").replace(".", SEPARATOR)
            self.add_error(field if field in self.fields else None, error.message)
        if not problem.errors:
            self.add_error(None, problem.detail)


class LinesField(forms.CharField):
    """A list of texts, one in a line."""

    widget = forms.Textarea(attrs={"rows": 4})

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        return [line.strip() for line in str(value or "").splitlines() if line.strip()]


class WeightsField(forms.CharField):
    """`name = number`, one in a line."""

    widget = forms.Textarea(attrs={"rows": 3, "class": "mono"})

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(f"{name} = {weight:g}" for name, weight in value.items()) if isinstance(value, dict) else value

    def to_python(self, value: Any) -> Any:
        weights = {}
        for line in str(value or "").splitlines():
            name, _, number = line.partition("=")
            if not line.strip():
                continue
            try:
                weights[name.strip()] = float(number)
            except ValueError:
                raise forms.ValidationError(f"“{line.strip()}” is not of the form dimension = number.") from None
        return weights


class AxesField(forms.CharField):
    """`axis = value, value`, one in a line."""

    widget = forms.Textarea(attrs={"rows": 3, "class": "mono"})

    def prepare_value(self, value: Any) -> Any:
        return (
            "\n".join(f"{axis} = {', '.join(words)}" for axis, words in value.items())
            if isinstance(value, dict)
            else value
        )

    def to_python(self, value: Any) -> Any:
        axes: dict[str, list[str]] = {}
        for line in str(value or "").splitlines():
            axis, _, words = (part.strip() for part in line.partition("="))
            if not line.strip():
                continue
            if not words or axis in axes:
                raise forms.ValidationError(f"“{line.strip()}” is not of the form axis = value, value; each axis once.")
            axes[axis] = [word.strip() for word in words.split(",") if word.strip()]
        return axes


class PairsField(forms.CharField):
    """`name = text`, one in a line."""

    widget = forms.Textarea(attrs={"rows": 3, "class": "mono"})

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(f"{name} = {text}" for name, text in value.items()) if isinstance(value, dict) else value

    def to_python(self, value: Any) -> Any:
        pairs = {}
        for line in str(value or "").splitlines():
            name, equals, text = line.partition("=")
            if not line.strip():
                continue
            if not (equals and name.strip() and text.strip()):
                raise forms.ValidationError(f"“{line.strip()}” is not of the form name = text.")
            pairs[name.strip()] = text.strip()
        return pairs


def _lines_of_pairs(kind: Any) -> type[forms.CharField]:
    """The field for a dictionary, by what its values are: lists of words, texts, or numbers."""
    values = get_args(kind)[1]
    if get_origin(values) is list:
        return AxesField
    plain = get_args(values)[0] if hasattr(values, "__metadata__") else values
    return PairsField if plain is str else WeightsField


def _plain(text: str) -> str:
    """Text written for the OpenAPI document, which is Markdown, as a page shows it."""
    return text.replace("`", "")


def _info(path: str) -> FieldInfo:
    section, key = path.split(".")
    kind = ProjectSettings.model_fields[section].annotation
    if not (isinstance(kind, type) and issubclass(kind, Section)):
        raise TypeError(f"{section} is no section")
    return kind.model_fields[key]


def _field(info: FieldInfo, value: Json) -> forms.Field:
    label, text = info.title or "", _plain(info.description or "")
    kind = info.annotation
    if get_origin(kind) is Literal:
        words = get_args(kind)
        return forms.TypedChoiceField(
            choices=[(word, str(word)) for word in words],
            coerce=lambda given: next(word for word in words if str(word) == given),
            label=label,
            help_text=text,
            initial=value,
        )
    if kind is bool:
        return forms.BooleanField(required=False, label=label, help_text=text, initial=value)
    if kind is str:
        return forms.CharField(required=False, label=label, help_text=text, initial=value)
    if isinstance(value, list):
        return LinesField(required=False, label=label, help_text=text, initial=value)
    if isinstance(value, dict):
        return _lines_of_pairs(kind)(required=False, label=label, help_text=text, initial=value)
    if kind is float:
        return forms.FloatField(
            label=label, help_text=text, initial=value, widget=forms.NumberInput(attrs={"step": "any"})
        )
    return forms.IntegerField(required=info.default is not None, label=label, help_text=text, initial=value)
