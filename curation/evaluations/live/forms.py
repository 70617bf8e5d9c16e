"""The form that starts live episodes."""

from typing import Any

from django import forms

from curation.evaluations.families import families_of
from curation.evaluations.models import Split
from curation.llm.models import Endpoint
from curation.projects.models import Project
from curation.runs.kinds import Json
from curation.runs.pages.forms import JsonField

SHOWN = 200
NUMBERS = ("episodes", "seed", "max_steps", "max_concurrency", "temperature", "max_tokens")


class LiveForm(forms.Form):
    """`params()` are a run's parameters as a script would send them; what is empty keeps its default."""

    models = forms.MultipleChoiceField(widget=forms.CheckboxSelectMultiple, label="Models, side by side")
    environment = forms.CharField(
        max_length=300,
        label="Environment",
        help_text="sandbox: the project's admitted scenarios. ws://host:port: an OpenEnv server.",
    )
    filter = JsonField(
        required=False,
        label="Scenarios",
        help_text='In the sandbox, as JSON: {"axes": ["difficulty=2"], "text": "oven"}. Empty means all.',
    )
    split = forms.ChoiceField(
        required=False, label="Tasks of a split", help_text="On a server: one episode for each task of the split."
    )
    episodes = forms.IntegerField(
        required=False,
        min_value=1,
        label="or so many seeds",
        help_text="On a server, without a split: 10 unless given.",
    )
    seed = forms.IntegerField(required=False, min_value=0, label="First seed", help_text="0 unless given.")
    family = forms.ChoiceField(label="Command family", help_text="On a server: what counts as a command in a reply.")
    max_steps = forms.IntegerField(required=False, min_value=1, label="Steps at most", help_text="15 unless given.")
    max_concurrency = forms.IntegerField(
        required=False, min_value=1, label="Episodes at once", help_text="8 unless given; a full server is waited for."
    )
    temperature = forms.FloatField(required=False, min_value=0, max_value=2, help_text="0 unless given.")
    max_tokens = forms.IntegerField(
        required=False, min_value=1, label="Token limit", help_text="120 unless given here or at the endpoint."
    )
    budget = forms.DecimalField(
        required=False, min_value=0, label="Budget in US dollars", help_text="The run stops before it is overrun."
    )

    def __init__(self, project: Project, *args: Any, **values: Any) -> None:
        super().__init__(*args, **values)
        endpoints = Endpoint.objects.of(project).values_list("name", "model")
        splits = Split.objects.of(project).order_by("-id")[:SHOWN]
        self._offer("models", [(name, f"{name} ({model})") for name, model in endpoints])
        self._offer("split", [("", "–"), *((str(s.pk), f"{s.name}, {s.rows_count} rows ({s.pk})") for s in splits)])
        self._offer("family", [(name, name) for name in families_of(project)])
        self.fields["temperature"].widget.attrs["step"] = "any"

    def params(self) -> Json:
        given = self.cleaned_data
        named = {"models", "environment", "filter", "split", "family"}
        params: Json = {"kind": "live", **{name: given[name] for name in named}}
        return params | {name: given[name] for name in NUMBERS if given[name] is not None}

    def _offer(self, name: str, choices: list[tuple[str, str]]) -> None:
        field = self.fields[name]
        if not isinstance(field, forms.ChoiceField):
            raise TypeError(f"{name} offers no choice")
        field.choices = choices
