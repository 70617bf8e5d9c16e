"""The form of a model endpoint. What its values must be is in `endpoints/change.py`."""

from django import forms

from curation.llm.endpoints.change import EndpointValues
from curation.llm.scripted import SCRIPTED_MODELS
from curation.web.forms import JsonField, ProblemForm
from curation.web.problems import Problem


class EndpointForm(ProblemForm):
    name = forms.CharField(help_text="How runs and reports refer to it: letters, digits and . _ : -")
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
        help_text="A JSON object sent with every request, such as {“temperature”: 0.2}. What the test finds is set "
        "here: “stream”: true for servers that only stream, “takes_json_schema”: true for self-hosted models that "
        "follow a JSON schema, “takes_tools”: false for models without tools; their prompts with tools are refused.",
    )
    version = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def add_problem(self, problem: Problem) -> None:
        """A pasted secret is removed from the fields that show it."""
        super().add_problem(problem)
        if problem.code == "secret":
            self.data = {key: self.data[key] for key in self.data}
            for error in problem.errors:
                self.data[error.path.split(".")[0]] = ""
            self.add_error(None, problem.detail)

    def values(self) -> EndpointValues:
        return EndpointValues(**{key: self.cleaned_data[key] for key in EndpointValues.__dataclass_fields__})

    def scripted_models(self) -> list[tuple[str, str]]:
        """The offline models' strings and descriptions, for the list below the form."""
        return [(f"scripted/{name}", about) for name, about in SCRIPTED_MODELS.items()]
