from typing import Any

from django import forms

from curation.llm.endpoints.check import check_values
from curation.llm.endpoints.schemas import EndpointIn
from curation.llm.models import Endpoint
from curation.llm.scripted import SCRIPTED_MODELS
from curation.projects.models import Project
from curation.web.forms import JsonField, ProblemForm
from curation.web.problems import Problem

# Parameters with a field of their own.
OWN_FIELDS = (
    *("stream", "takes_json_schema", "takes_tools", "takes_max_tokens", "max_completion_tokens"),
    *("key_style", "api_version"),
)


class YesNo(forms.TypedChoiceField):
    """A parameter that is true, false or not set."""

    def __init__(self, *, label: str, help_text: str) -> None:
        choices = [("", "Unknown"), ("True", "Yes"), ("False", "No")]
        super().__init__(
            choices=choices,
            coerce=lambda text: text == "True",
            empty_value=None,
            required=False,
            label=label,
            help_text=help_text,
        )


class EndpointForm(ProblemForm):
    name = forms.CharField(help_text="How runs and reports refer to it: letters, digits and . _ : - /")
    model = forms.CharField(
        help_text="A LiteLLM string such as openai/gpt-4o-mini, or scripted/… for an offline model.",
        widget=forms.TextInput(attrs={"class": "mono", "list": "served-models", "autocomplete": "off"}),
    )
    api_base = forms.CharField(
        required=False,
        label="Base URL",
        help_text="Such as http://127.0.0.1:8001/v1. Leave empty for the provider's own address.",
        widget=forms.TextInput(attrs={"class": "mono", "inputmode": "url"}),
    )
    api_key_env = forms.CharField(
        required=False,
        label="Key variable",
        help_text="Name of the environment variable that contains the key on the workers. Never the key itself.",
        widget=forms.TextInput(attrs={"class": "mono", "autocomplete": "off", "spellcheck": "false"}),
    )
    family = forms.CharField(
        required=False, help_text="Such as qwen. Reports flag judges of the same family as a model they judge."
    )
    max_concurrency = forms.IntegerField(initial=16, label="Calls at once", help_text="Over all workers.")
    rpm = forms.IntegerField(required=False, label="Requests per minute", help_text="Empty: no limit.")
    tpm = forms.IntegerField(required=False, label="Tokens per minute", help_text="Empty: no limit.")
    price_in = forms.DecimalField(
        required=False, label="Input price", help_text="US dollars per 1,000,000 tokens; empty: unknown."
    )
    price_out = forms.DecimalField(
        required=False, label="Output price", help_text="US dollars per 1,000,000 tokens; 0: free."
    )
    params = JsonField(
        required=False,
        label="Parameters",
        help_text="A JSON object of further parameters, sent with every request, such as {“temperature”: 0.2}.",
    )
    stream = YesNo(label="Stream", help_text="Yes for servers that only stream their answers.")
    takes_json_schema = YesNo(
        label="Supports JSON schema", help_text="Unknown: LiteLLM's list decides, which knows no self-hosted models."
    )
    takes_tools = YesNo(label="Tools", help_text="No: prompts with tools are refused.")
    takes_max_tokens = YesNo(
        label="Takes max_tokens", help_text="No: the limit of each request is sent as max_completion_tokens."
    )
    max_completion_tokens = forms.IntegerField(
        required=False, label="max_completion_tokens", help_text="Of every request, instead of its own limit."
    )
    key_style = forms.ChoiceField(
        required=False,
        label="Header of the key",
        choices=[
            ("", "By the host"),
            ("bearer", "Authorization: Bearer"),
            ("azure", "api-key"),
            ("anthropic", "x-api-key"),
        ],
        help_text="Where the server's models are listed. Calls use the header of the model's provider.",
    )
    api_version = forms.CharField(
        required=False,
        label="API version",
        help_text="Azure's, such as 2024-10-21.",
        widget=forms.TextInput(attrs={"class": "mono", "autocomplete": "off"}),
    )
    version = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def __init__(self, project: Project, *args: Any, **values: Any) -> None:
        super().__init__(*args, **values)
        self._project = project

    def check(self) -> None:
        check_values(self.values(), self._project)

    def _add_errors(self, problem: Problem) -> None:
        """A pasted secret is removed from the fields that show it."""
        super()._add_errors(problem)
        if problem.code == "secret":
            self.data = {key: self.data[key] for key in self.data}
            for error in problem.errors:
                self.data[error.path.split(".")[0]] = ""
            self.add_error(None, problem.detail)

    @staticmethod
    def initial_of(endpoint: Endpoint) -> dict[str, object]:
        """Return the fields of an endpoint. Parameters with a field of their own are not in the JSON."""
        params = dict(endpoint.params)
        own = {name: params.pop(name, None) for name in OWN_FIELDS}
        return {**dict(EndpointIn.model_validate(endpoint)), **own, "params": params, "version": endpoint.version}

    def values(self) -> EndpointIn:
        """The endpoint; fields that are wrong have their default."""
        given = {key: value for key, value in self.cleaned_data.items() if key in EndpointIn.model_fields}
        own = {name: value for name in OWN_FIELDS if (value := self.cleaned_data.get(name)) not in (None, "")}
        params = {**given.pop("params", {}), **own}
        return EndpointIn(**{"name": "", "model": "", **given, "params": params})

    def scripted_models(self) -> list[tuple[str, str]]:
        return [(f"scripted/{name}", about) for name, about in SCRIPTED_MODELS.items()]
