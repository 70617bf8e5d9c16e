"""The form that starts live episodes."""

from django import forms

from curation.evaluations.screen.forms import LaunchForm
from curation.runs.kinds import Json
from curation.web.forms import JsonField


class LiveForm(LaunchForm):
    environment = forms.CharField(
        max_length=300,
        label="Environment",
        help_text="sandbox: the project's admitted scenarios. ws://host:port: an OpenEnv server.",
    )
    filter = JsonField(
        required=False,
        label="Scenarios",
        help_text='In the sandbox, as JSON: {"axes": ["difficulty=2"], "text": "oven"}. Empty: all.',
    )
    split = forms.ChoiceField(
        required=False, label="Tasks of a split", help_text="On a server: one episode for each task of the split."
    )
    episodes = forms.IntegerField(
        required=False, min_value=1, label="or a number of seeds", help_text="On a server without a split. Default: 10."
    )
    seed = forms.IntegerField(required=False, min_value=0, label="First seed", help_text="Default: 0.")
    family = forms.ChoiceField(label="Command family", help_text="On a server: what counts as a command in a reply.")
    max_steps = forms.IntegerField(required=False, min_value=1, label="Steps at most", help_text="Default: 15.")
    max_concurrency = forms.IntegerField(
        required=False,
        min_value=1,
        label="Episodes at once",
        help_text="Default: 8. Episodes wait while the server is full.",
    )

    def params(self) -> Json:
        """The parameters of a valid form."""
        numbers = ("episodes", "seed", "max_steps", "max_concurrency", "temperature", "max_tokens")
        return {"kind": "live", **self.given("models", "environment", "filter", "split", "family", *numbers)}
