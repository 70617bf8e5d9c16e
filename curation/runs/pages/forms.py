"""The launch form, built from the parameters of a run kind."""

from collections.abc import Sequence
from typing import Any, get_args, get_origin

from django import forms
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from curation.llm.models import Endpoint
from curation.projects.models import Project
from curation.runs.kinds import Json, Kind
from curation.runs.launch import check_launch
from curation.runs.models import Run
from curation.runs.pages.parameters import CHOICES, label_of
from curation.web.forms import JsonField, ProblemForm
from curation.web.ids import find
from curation.web.lists.filters import RowFilter
from curation.web.lists.form_field import FilterField
from curation.web.schema_form import field_of, plain_type
from curation.web.text.figures import quoted

# The models and the filter come first; the other fields have defaults that rarely change.
FIRST = (
    *("tasks", "agents", "models", "model", "teacher", "solver", "king_model", "challenger_model", "judges"),
    *("name", "subject", "rubric", "python", "url"),
    *("samples", "filter", "source"),
    *("since", "until"),
)
LONG_TEXTS = ("text", "python", "rubric")
ONE_MODEL = ("model", "teacher", "solver", "king_model", "challenger_model")
MANY_MODELS = ("judges", "models")
LONG = {"rows": 28, "class": "mono", "spellcheck": "false"}
HELP = {
    "leak_reader": "Reads each challenger answer after the leak lint. Empty: the leak reader of the settings, else the "
    "first judge whose model wrote neither answer.",
    "samples": "Answers per prompt, or rollouts per scenario.",
    "attempts": "Attempts per answer or verdict, if one is refused or cannot be parsed.",
    "swap": "Every judge reads both orders.",
    "mode": "The answer that the challenger's is compared with.",
    "min_judges": "Judges that must parse for a duel to count; empty means all.",
    "show_reference": "Judges also see the source's own turn.",
    "fresh": "Call the model even if the record has an answer.",
    "tools": "The operator calls functions, bash and the scenario's own tools, instead of writing a command.",
    "max_turns": "Replies of the model in one episode.",
    "command_timeout": "Seconds after which one command is killed.",
    "episode_timeout": "Seconds that all commands of an episode may take together.",
    "repairs": "How often a bundle that the gate refused goes back to the model with the report.",
    "repeats": "How often the reference solution is repeated.",
    "n": "Scenarios to write.",
    "axes": 'Fixed axes, as JSON: {"task": ["cleanup", "archive"], "difficulty": 2}. Empty leaves all free.',
    "structured": "Send a JSON schema for the answer, if the model supports it.",
    "seed": "The same seed picks the same combinations. Empty picks different ones in every run.",
    "dry_run": "Check only the structure and run nothing. Such scenarios cannot be rolled out.",
    "source": "Rollouts and episodes are paired by scenario or task, imported runs by task.",
    "strategy": "Compare the first action that differs, or everything after the orientation.",
    "weights": 'Weight per dimension, as JSON: {"correctness": 2}.',
    "since": "Calls that began from then on, such as 2026-01-31 or 2026-01-31T08:00 in UTC. Empty reads all.",
    "until": "Calls that began before then. Empty reads those before now.",
    "run": "Id of the run whose duels are scored again. Empty uses the filter.",
}
FALLBACKS = {
    "king_model": ("generation", "king_model"),
    "challenger_model": ("generation", "challenger_model"),
    "judges": ("panel", "judges"),
    "swap": ("panel", "swap"),
    "mode": ("panel", "mode"),
    "attempts": ("panel", "attempts"),
    "min_judges": ("panel", "min_judges"),
    "show_reference": ("panel", "show_reference"),
}


class LaunchForm(ProblemForm):
    """`params()` returns the parameters as a script would send them, without empty fields."""

    path_prefix = "params."
    # Required fields depend on the other fields, so only the server knows them.
    use_required_attribute = False

    def __init__(self, kind: Kind[Any], project: Project, data: Any = None, initial: Json | None = None) -> None:
        self._kind, self._project = kind, project
        names = list(Endpoint.objects.of(project).values_list("name", flat=True))
        presets = kind.presets(project)
        known = _defaults(kind.params, project) | {name: preset.value for name, preset in presets.items()}
        super().__init__(data, initial={**known, **(initial or {})})
        asked = {name: info for name, info in kind.params.model_fields.items() if name not in kind.set_at_launch}
        needed, choices = kind.needed(project, self.initial if data is None else data), kind.choices(project)
        for name, info in asked.items():
            field = _field(name, info, names, kind.filter, choices.get(name))
            field.required = name in needed
            self.fields[name] = field
        for name, preset in presets.items():
            self.fields[name].help_text = preset.why
        self.order_fields(FIRST)
        self._main = {
            "budget",
            *FIRST,
            *(name for name, info in asked.items() if info.is_required()),
            *choices,
        }
        self.order_fields([*FIRST, *(name for name in self.fields if name in self._main)])
        self.fields["budget"] = forms.DecimalField(
            required=False, min_value=0, label="Budget in US dollars", help_text="The run stops before it spends more."
        )

    def check(self) -> None:
        budget, unknown = self.cleaned_data.get("budget"), set(self.errors)
        check_launch(project=self._project, kind=self._kind, params=self.params(), budget=budget, unknown=unknown)

    @property
    def main(self) -> list[forms.BoundField]:
        return [field for field in self if field.name in self._main]

    @property
    def advanced(self) -> list[forms.BoundField]:
        return [field for field in self if field.name not in self._main]

    @property
    def advanced_values(self) -> str:
        """The values of the other fields, in one line."""
        return ", ".join(f"{field.label.lower()} {shown}" for field in self.advanced if (shown := _shown(field)))

    def params(self) -> Json:
        given = {name: self.cleaned_data.get(name) for name in self._kind.params.model_fields if name in self.fields}
        return {name: value for name, value in given.items() if value not in (None, "", [], {})}


def _shown(field: forms.BoundField) -> str:
    value = field.value()
    if isinstance(field.field, forms.BooleanField):
        return "on" if value else "off"
    if isinstance(field.field, forms.ChoiceField):
        choices: Any = field.field.choices
        value = dict(choices).get(value, value)
    return "" if value in (None, "", [], {}) else str(value).lower()


def run_to_repeat(project: Project, kind: str, given: str | None) -> Run | None:
    """Return the run whose parameters a form starts from: `from` in the form's address."""
    return find(Run.objects.of(project).filter(kind=kind), given, "run") if given else None


def _field(
    name: str,
    info: FieldInfo,
    models: list[str],
    filter: type[RowFilter] | None,
    choices: Sequence[tuple[str, str]] | None,
) -> forms.Field:
    shown: dict[str, Any] = {
        "required": False,
        "label": label_of(name),
        "help_text": quoted(info.description or HELP.get(name, "")),
    }
    if choices is not None:
        return forms.ChoiceField(choices=[("", "–"), *choices], **shown)
    if name == "filter" and filter is not None:
        return FilterField(filter, **shown)
    if name in ONE_MODEL:
        return forms.ChoiceField(choices=[("", "–"), *((m, m) for m in models)], **shown)
    if name in MANY_MODELS:
        return forms.MultipleChoiceField(choices=[(m, m) for m in models], widget=forms.CheckboxSelectMultiple, **shown)
    if name in LONG_TEXTS:
        return forms.CharField(strip=False, widget=forms.Textarea(attrs=LONG), **shown)
    kind = plain_type(info.annotation)
    if get_origin(kind) is dict:
        return JsonField(**shown)
    field = field_of(info, None)
    if isinstance(field, forms.ChoiceField):
        field.choices = [(value, CHOICES.get(name, {}).get(value, str(value))) for value in get_args(kind)]
    field.__dict__ |= shown
    return field


def _defaults(params: type[BaseModel], project: Project) -> Json:
    settings = project.settings.model_dump()
    found: Json = {}
    for name, info in params.model_fields.items():
        if name in FALLBACKS:
            section, key = FALLBACKS[name]
            found[name] = settings[section][key]
        elif not info.is_required():
            found[name] = info.get_default(call_default_factory=True)
    return found
