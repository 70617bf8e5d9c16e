"""A refused launch in words at the fields of its form."""

from django import forms

from curation.web.problems import Problem


def explain(form: forms.Form, problem: Problem) -> None:
    """Each of the problem's errors at its field; what has none stands above the form."""
    placed = False
    for error in problem.errors:
        name = error.path.removeprefix("params.").split(".")[0]
        if name in form.fields:
            form.add_error(name, error.message)
            placed = True
    if not placed:
        form.add_error(None, problem.detail)
