"""A form that shows the `Problem` which refused what it sent, and a field for a JSON object."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import orjson
from django import forms

from curation.web.problems import Problem
from curation.web.text.storable import read_json


class ProblemForm(forms.Form):
    """In a view: `with form.shows_problem(): …; return redirect(…)`, then render the form with its `status`.

    An error's path, without `path_prefix`, names its field: `panel.judges` is `panel__judges`, `params.stop.0` is
    `params`. Where an error has no field, the problem's own text is shown on top.
    """

    path_prefix: ClassVar = ""
    problem: Problem | None = None

    @contextmanager
    def shows_problem(self) -> Iterator[None]:
        try:
            yield
        except Problem as problem:
            self.add_problem(problem)

    def add_problem(self, problem: Problem) -> None:
        self.problem = problem
        for error in problem.errors:
            path = error.path.removeprefix(self.path_prefix)
            first, _, rest = path.partition(".")
            name = path.replace(".", "__")
            # A rule about several fields is shown at the first of them.
            place = (
                name
                if name in self.fields
                else next(filter(lambda field: field.startswith(f"{name}__"), self.fields), "")
            )
            if place:
                self.add_error(place, error.sentence())
            elif first in self.fields:
                self.add_error(first, f"“{rest}”: {error.sentence()}")
            else:
                self.add_error(None, f"“{path}”: {error.sentence()}" if path else error.sentence())
        if not problem.errors:
            self.add_error(None, problem.detail)

    @property
    def status(self) -> int:
        """The HTTP status of the page with this form."""
        if self.problem is not None:
            return self.problem.status
        return 422 if self.errors else 200


class JsonField(forms.CharField):
    """A JSON object in a text field; empty for none."""

    def __init__(self, **values: Any) -> None:
        super().__init__(widget=forms.Textarea(attrs={"rows": 2, "class": "mono", "spellcheck": "false"}), **values)

    def clean(self, value: Any) -> dict[str, Any]:
        text = super().clean(value)
        if not text:
            return {}
        try:
            found = read_json(text)
        except Problem as problem:
            raise forms.ValidationError(problem.detail) from None
        if not isinstance(found, dict):
            raise forms.ValidationError("This is not a JSON object.")
        return found

    def prepare_value(self, value: Any) -> Any:
        return orjson.dumps(value).decode() if isinstance(value, dict) and value else value or ""
