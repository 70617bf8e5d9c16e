"""Forms of the projects pages. Values are checked where they are written, not here.

The settings form is generated from `ProjectSettings`.
"""

from collections.abc import Callable
from typing import Any, Literal, get_args, get_origin

from django import forms
from pydantic.fields import FieldInfo

from curation.projects.models import Project, Role, Scope
from curation.projects.settings.dependents import check_change
from curation.projects.settings.document import ProjectSettings
from curation.projects.settings.fields import Section
from curation.projects.settings.patch import Json, flatten
from curation.projects.tokens.issue import check_token
from curation.web.forms import ProblemForm
from curation.web.text.quotes import quoted

SEPARATOR = "__"  # `thresholds.final` is the field `thresholds__final`


class ProjectForm(ProblemForm):
    name = forms.CharField(widget=forms.TextInput(attrs={"autofocus": True}))
    slug = forms.CharField(
        help_text="Lower-case letters, digits and hyphens. It is part of every address and cannot be changed."
    )


class GeneralForm(ProblemForm):
    name = forms.CharField()
    guidelines = forms.CharField(
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 14, "class": "mono", "spellcheck": "true"}),
        help_text="How reviewers should decide, in Markdown. The queue shows it beside each sample.",
    )
    version = forms.IntegerField(widget=forms.HiddenInput)


class MemberForm(ProblemForm):
    username = forms.CharField(widget=forms.TextInput(attrs={"autocomplete": "off"}))
    role = forms.ChoiceField(choices=Role.choices, initial=Role.REVIEWER)


class TokenForm(ProblemForm):
    name = forms.CharField(required=False, help_text="The purpose of the token.")
    scopes = forms.MultipleChoiceField(
        choices=Scope.choices,
        widget=forms.CheckboxSelectMultiple,
        initial=[Scope.READ],
        help_text="Permissions of the token, as far as your role in a project has them.",
    )
    expires_in_days = forms.IntegerField(
        initial=90, required=False, label="Expires in days", help_text="Leave empty for a token that never expires."
    )

    def check(self) -> None:
        given = self.cleaned_data
        name, days = given.get("name", ""), given.get("expires_in_days")
        check_token(scopes=given.get("scopes", ()), name=name, expires_in_days=days)


class TomlForm(ProblemForm):
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


class InstructionsForm(ProblemForm):
    text = forms.CharField(
        strip=False, widget=forms.Textarea(attrs={"rows": 28, "class": "mono", "spellcheck": "false"})
    )
    version = forms.IntegerField(widget=forms.HiddenInput)


class SettingsForm(ProblemForm):
    """One field per setting. `patch()` returns the valid ones that differ from the settings of the project."""

    path_prefix = "settings."
    version = forms.IntegerField(widget=forms.HiddenInput)

    def __init__(self, project: Project, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._project, self.before = project, flatten(project.settings)
        for path, value in self.before.items():
            self.fields[path.replace(".", SEPARATOR)] = _field(_info(path), value)

    def check(self) -> None:
        check_change(self._project, self.patch())

    def sections(self) -> list[tuple[str, str, list[forms.BoundField]]]:
        rows = []
        for name, info in ProjectSettings.model_fields.items():
            about = quoted((info.annotation.__doc__ or "").strip()) if info.annotation else ""
            bound = [self[field] for field in self.fields if field.startswith(f"{name}{SEPARATOR}")]
            rows.append((name.capitalize(), about, bound))
        return rows

    def patch(self) -> dict[str, Json]:
        patch: dict[str, Json] = {}
        for path, before in self.before.items():
            after = self.cleaned_data.get(path.replace(".", SEPARATOR), before)
            if after == before:
                continue
            section, key = path.split(".")
            inner = patch.setdefault(section, {})
            if isinstance(inner, dict):
                inner[key] = after
        return patch


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


def _info(path: str) -> FieldInfo:
    section, key = path.split(".")
    kind = ProjectSettings.model_fields[section].annotation
    if not (isinstance(kind, type) and issubclass(kind, Section)):
        raise TypeError(f"{section} is not a section")
    return kind.model_fields[key]


def _words_of(info: FieldInfo) -> list[str]:
    extra = info.json_schema_extra
    found = extra.get("x-words") if isinstance(extra, dict) else None
    return [str(word) for word in found] if isinstance(found, list) else []


def _field(info: FieldInfo, value: Json) -> forms.Field:
    shown: dict[str, Any] = {"label": info.title or "", "help_text": quoted(info.description or ""), "initial": value}
    kind = info.annotation
    if get_origin(kind) is Literal:
        words = get_args(kind)
        return forms.TypedChoiceField(
            choices=list(zip(words, _words_of(info) or map(str, words), strict=True)),
            coerce=lambda given: next(word for word in words if str(word) == given),
            **shown,
        )
    if kind is bool:
        return forms.BooleanField(required=False, **shown)
    if kind is str:
        return forms.CharField(required=False, **shown)
    if isinstance(value, list):
        return LinesField(required=False, **shown)
    if isinstance(value, dict):
        return _mapping_field(kind, required=False, **shown)
    if kind is float:
        return forms.FloatField(widget=forms.NumberInput(attrs={"step": "any"}), **shown)
    return forms.IntegerField(required=info.default is not None, **shown)
