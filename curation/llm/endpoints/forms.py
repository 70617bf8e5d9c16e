"""The form of a model endpoint. What its values must be is said once, in `endpoints.check_values`."""

from typing import Any

from django import forms

from curation.llm.endpoints.change import EndpointValues
from curation.llm.scripted import SCRIPTED_MODELS
from curation.web.problems import Problem


class EndpointForm(forms.Form):
    name = forms.CharField(max_length=60, help_text="Letters, digits and . _ : - ; runs and reports call it by this.")
    model = forms.CharField(
        max_length=200,
        help_text="A LiteLLM string such as openai/gpt-4o-mini, or scripted/… for an offline model.",
        widget=forms.TextInput(attrs={"class": "mono", "list": "served-models", "autocomplete": "off"}),
    )
    api_base = forms.CharField(
        max_length=300,
        required=False,
        label="Base URL",
        help_text="Such as http://127.0.0.1:8001/v1; empty for the provider's own.",
        widget=forms.TextInput(attrs={"class": "mono", "inputmode": "url"}),
    )
    api_key_env = forms.CharField(
        max_length=400,
        required=False,
        label="Key variable",
        help_text="Name of the environment variable that holds the key where the workers run, never the key itself.",
        widget=forms.TextInput(attrs={"class": "mono", "autocomplete": "off", "spellcheck": "false"}),
    )
    family = forms.CharField(max_length=60, required=False, help_text="Such as qwen: marks judges of their own kind.")
    max_concurrency = forms.IntegerField(initial=16, label="Calls at once", help_text="Over all workers.")
    rpm = forms.IntegerField(required=False, label="Requests per minute")
    tpm = forms.IntegerField(required=False, label="Tokens per minute")
    price_in = forms.DecimalField(required=False, label="Price in", help_text="$ per 1,000,000 tokens; empty: unknown.")
    price_out = forms.DecimalField(required=False, label="Price out", help_text="$ per 1,000,000 tokens; 0: free.")
    params = forms.JSONField(
        required=False,
        initial=dict,
        label="Parameters",
        help_text="A JSON object that goes with every request, such as {“temperature”: 0.2}.",
        widget=forms.Textarea(attrs={"rows": 4, "class": "mono", "spellcheck": "false"}),
    )
    version = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def clean_params(self) -> dict[str, Any]:
        given = self.cleaned_data["params"]
        if given is None:
            return {}
        if not isinstance(given, dict):
            raise forms.ValidationError("Parameters are a JSON object.")
        return given

    def values(self) -> EndpointValues:
        return EndpointValues(**{key: self.cleaned_data[key] for key in EndpointValues.__dataclass_fields__})

    def scripted_models(self) -> list[tuple[str, str]]:
        """Model strings of the offline models with what each does, for the list under the field."""
        return [(f"scripted/{name}", about) for name, about in SCRIPTED_MODELS.items()]


def refused(form: EndpointForm, problem: Problem) -> EndpointForm:
    """The form to show again: every reason under its field, and a pasted secret taken out of what it shows."""
    fields = [error.path.split(".")[0] for error in problem.errors]
    data = {key: form.data.get(key) for key in form.data}
    if problem.code == "secret":
        for field in fields:
            data[field] = ""
    shown = EndpointForm(data)
    shown.full_clean()
    shown.errors.clear()
    for field, error in zip(fields, problem.errors, strict=True):
        shown.add_error(field if field in shown.fields else None, error.message)
    if not problem.errors or problem.code == "secret":
        shown.add_error(None, problem.detail)
    return shown
