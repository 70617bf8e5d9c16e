"""The settings tab *Labels*: the questions with counts of their answers, and the form for another one."""

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from curation.labels.models import QuestionKind
from curation.labels.questions.change import (
    Wording,
    add_question,
    change_question,
    check_wording,
    delete_question,
    question_of,
    wording_of,
)
from curation.labels.questions.counts import Counted, counted_questions
from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.projects.settings.pages import settings_context
from curation.samples.models import Kind
from curation.web.forms import ProblemForm
from curation.web.lists.filters import url_query


class QuestionForm(ProblemForm):
    title = forms.CharField(label="Question", max_length=120, help_text="As reviewers read it.")
    name = forms.CharField(
        max_length=40, help_text="For filters and columns of exports, such as error_type; it stays once it is answered."
    )
    kind = forms.ChoiceField(label="Answer", choices=QuestionKind.choices)
    choices = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="One per line; whole numbers for a rating; empty for text.",
    )
    description = forms.CharField(required=False, max_length=1000, widget=forms.Textarea(attrs={"rows": 2}))
    about = forms.ChoiceField(label="Samples", required=False, choices=[("", "All"), *Kind.choices])
    required = forms.BooleanField(required=False, label="Must be answered before a sample is approved")

    def check(self) -> None:
        check_wording(self.wording())

    def wording(self) -> Wording:
        """The question; fields that are wrong are empty."""
        given: dict[str, Any] = {"title": "", "name": "", "kind": "", "choices": "", **self.cleaned_data}
        lines = [line.strip() for line in given.pop("choices").splitlines() if line.strip()]
        if given["kind"] == QuestionKind.RATING:
            return Wording(choices=[int(line) if line.isdecimal() else line for line in lines], **given)
        return Wording(choices=lines, **given)


@require_http_methods(["GET", "POST"])
@project_page(Scope.READ)
def question_list(request: HttpRequest, access: Access) -> HttpResponse:
    form = QuestionForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with form.shows_problem():
            add_question(access=access, wording=form.wording())
            return redirect("question-list", access.project.slug)
    samples = reverse("sample-list", args=[access.project.slug])
    context = {
        **settings_context(access, "labels", f"/api/v1/projects/{access.project.slug}/questions"),
        "form": form,
        "rows": [(row, _links(samples, row)) for row in counted_questions(access.project)],
    }
    return render(request, "labels/list.html", context, status=form.status)


@require_POST
@project_page(Scope.ADMIN)
def question_change(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    """The buttons of one question: archive, ask again, require, do not require, delete."""
    match request.POST.get("do"):
        case "archive" | "unarchive" as word:
            change_question(access=access, question_id=pk, archived=word == "archive")
        case "require" | "unrequire" as word:
            wording = wording_of(question_of(access, pk), required=word == "require")
            change_question(access=access, question_id=pk, wording=wording)
        case "delete":
            delete_question(access=access, question_id=pk)
    return redirect("question-list", access.project.slug)


def _links(samples: str, row: Counted) -> list[tuple[str, int, str]]:
    """Each choice with its count and the list of its samples; of a text any answer."""
    values = row.values or [("*", row.samples)]
    return [
        ("any answer" if value == "*" else value, count, f"{samples}?{_query(row.question.name, value)}")
        for value, count in values
    ]


def _query(name: str, value: str) -> str:
    return url_query([("label", f"{name}={value}".replace(",", "\\,"))])
