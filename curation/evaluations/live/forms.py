from django import forms

from curation.evaluations.live.task_set import OF_A_TASK
from curation.evaluations.screen.forms import EvaluationLaunchForm
from curation.runs.kinds import Json
from curation.scenarios.filters import ScenarioFilter
from curation.web.lists.form_field import FilterField


class LiveForm(EvaluationLaunchForm):
    on_server = True
    field_order = ("models", "environment", "filter", "reset_template", "split", "episodes", "seed", "family")

    environment = forms.CharField(
        max_length=300,
        label="Environment",
        help_text="sandbox: the project's admitted scenarios. http://host:port or ws://host:port: an OpenEnv server.",
    )
    reset_template = forms.CharField(
        required=False,
        max_length=20_000,
        widget=forms.Textarea(attrs={"rows": 3, "class": "mono", "spellcheck": "false", "placeholder": OF_A_TASK}),
        label="Sent with the server's reset",
        help_text='JSON with fields of the row: {"task": {{row.task}}}. Also {{seed}} and {{repeat}}. '
        "Servers read other fields than task_id, and play any task if they do not know the one they get: try it.",
    )
    filter = FilterField(ScenarioFilter, required=False, label="Scenarios", help_text="In the sandbox. Empty: all.")
    split = forms.ChoiceField(
        required=False,
        label="Tasks of a split",
        help_text="On a server: the tasks of the split, each by its first row.",
    )
    episodes = forms.IntegerField(
        required=False,
        min_value=1,
        label="Episodes of each task",
        help_text="Default: 1. On a server without a split: the number of seeds, by default 10.",
    )
    seed = forms.IntegerField(required=False, min_value=0, label="First seed", help_text="Default: 0.")
    family = forms.ChoiceField(
        label="Command family",
        help_text="On a server: what counts as a command in a reply. environment: actions by the server's own schema, "
        "such as numbers, choices, code, answers and tool calls.",
    )
    max_steps = forms.IntegerField(required=False, min_value=1, label="Steps at most", help_text="Default: 15.")
    max_concurrency = forms.IntegerField(
        required=False,
        min_value=1,
        label="Episodes at once",
        help_text="Default: 8. Episodes wait while the server is full.",
    )
    no_hints = forms.BooleanField(
        required=False, label="Without hints", help_text="On a server: a command that asks for a hint is not sent."
    )
    tools = forms.BooleanField(
        required=False,
        label="Function tools",
        help_text="The models call functions: in the sandbox bash and the scenario's own tools, on a server the tools "
        "that it lists.",
    )
    trajectories = forms.BooleanField(
        required=False,
        label="Make samples of the episodes",
        help_text="On a server: each episode also becomes a trajectory to review. A model that is trained on them has "
        "seen the split's tasks.",
    )

    def values(self) -> Json:
        numbers = ("episodes", "seed", "max_steps", "max_concurrency", "temperature", "max_tokens")
        texts = ("models", "environment", "reset_template", "filter", "split", "family", "tools", "trajectories")
        return {"kind": "live", "hints": not self.cleaned_data.get("no_hints"), **self.given(*texts, *numbers)}

    def to_try(self) -> Json:
        """The fields that a reset is made from. The form need not be valid."""
        self.is_valid()
        names = ("environment", "split", "reset_template", "seed")
        return {name: value for name in names if (value := self.cleaned_data.get(name)) not in (None, "")}
