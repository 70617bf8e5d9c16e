"""Forms of the projects pages. Values are checked where they are written, not here.

The settings form is generated from `ProjectSettings`.
"""

from collections.abc import Sequence
from typing import Any

from django import forms
from pydantic.fields import FieldInfo

from curation.projects.models import Project, Role, Scope
from curation.projects.settings.dependents import check_change, known_names
from curation.projects.settings.document import ProjectSettings
from curation.projects.settings.patch import Json, field_at, flatten
from curation.projects.tokens.issue import check_token
from curation.web.forms import ProblemForm
from curation.web.schema_form import field_of
from curation.web.text.figures import quoted

UNKNOWN_NAME = "%(value)s does not exist."
SEPARATOR = "__"  # `thresholds.final` is the field `thresholds__final`


class ProjectForm(ProblemForm):
    name = forms.CharField(widget=forms.TextInput(attrs={"autofocus": True}))
    slug = forms.CharField(
        required=False,
        help_text="Part of every address, which cannot be changed: lower-case letters, digits and hyphens. Empty: made "
        "of the name.",
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
        known = known_names(project)
        for path, value in self.before.items():
            info = field_at(path)
            extra = info.json_schema_extra
            names = known.get(str(extra.get("names"))) if isinstance(extra, dict) else None
            field = field_of(info, value) if names is None else _field_of_names(info, value, names)
            self.fields[path.replace(".", SEPARATOR)] = field

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


def _field_of_names(info: FieldInfo, value: Any, names: Sequence[str]) -> forms.Field:
    """Return a choice among the names, those of the setting first, also where they do not exist any more."""
    is_list = isinstance(value, list)
    own = value if is_list else [value] if value else []
    choices = [(name, name) for name in dict.fromkeys([*own, *names])]
    shown: dict[str, Any] = {"required": False, "label": info.title, "initial": value}
    shown |= {"help_text": quoted(info.description or ""), "error_messages": {"invalid_choice": UNKNOWN_NAME}}
    if is_list:
        return forms.MultipleChoiceField(choices=choices, widget=forms.CheckboxSelectMultiple, **shown)
    return forms.ChoiceField(choices=[("", "–"), *choices], **shown)
