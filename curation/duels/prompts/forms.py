from django import forms

from curation.web.forms import ProblemForm
from curation.web.problems import FieldError, Problem

FIELD_OF = {"instance_id": "instance_ids", "reason": "reason"}


class ExclusionForm(ProblemForm):
    instance_ids = forms.CharField(
        label="Instances",
        help_text="One per line, up to 500.",
        widget=forms.Textarea(attrs={"rows": 3, "class": "mono"}),
    )
    reason = forms.CharField(max_length=200, widget=forms.TextInput(attrs={"placeholder": "broken environment"}))

    def rows(self) -> list[tuple[str, str]]:
        """The instances with the reason; the form must be valid."""
        lines = (line.strip() for line in self.cleaned_data["instance_ids"].splitlines())
        return [(line, self.cleaned_data["reason"]) for line in lines if line]

    def add_problem(self, problem: Problem) -> None:
        """An error of one instance, `exclusions.3.instance_id`, belongs to the field with all of them."""
        rows, lines = [error.path.split(".") for error in problem.errors], self.rows()
        problem.errors = tuple(
            FieldError(FIELD_OF[path[-1]], f"{lines[int(path[1])][0][:60]}: {error.message}")
            for path, error in zip(rows, problem.errors, strict=True)
        ) or (FieldError("instance_ids", problem.detail),)
        super().add_problem(problem)
