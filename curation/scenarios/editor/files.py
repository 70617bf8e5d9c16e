"""Edit the files of a Harbor task one at a time: replace, add or remove one. Each edit makes the scenario a draft."""

from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from curation.projects.access import Access
from curation.scenarios.bundles.harbor import TaskPart, parse_scenario
from curation.scenarios.bundles.save import save_scenario
from curation.scenarios.models import Scenario
from curation.scenarios.taxonomy.axes import taxonomy_of
from curation.web.forms import ProblemForm
from curation.web.http.middleware import posted_version
from curation.web.problems import FieldError, Invalid
from curation.web.text.markup import with_signs
from sandbox.harbor.task_folder import INSTRUCTION


class FileForm(ProblemForm):
    path = forms.CharField(max_length=400, help_text="Relative to the task's folder. Another path makes another file.")
    content = forms.CharField(
        required=False, strip=False, widget=forms.Textarea(attrs={"class": "mono", "rows": 28, "spellcheck": "false"})
    )
    program = forms.BooleanField(required=False, label="It can be executed")


def edit_files(request: HttpRequest, access: Access, row: Scenario) -> HttpResponse:
    """The page of one file, the query's `path`. A POST with `then=remove` removes it."""
    files = {part["path"]: TaskPart.model_validate(part) for part in row.text.bundle["files"]}
    path = request.GET.get("path") or next((name for name in files if name.endswith(INSTRUCTION)), "")
    here = reverse("scenario-edit", args=[access.project.slug, row.pk])
    text = files[path].content if path in files else ""
    # A browser's field would replace carriage returns.
    is_plain = text is not None and "\r" not in text
    if request.method == "POST":
        form = FileForm(request.POST)
        if form.is_valid():
            with form.shows_problem():
                given = form.cleaned_data
                if not is_plain and request.POST.get("then") != "remove" and given["path"] == path:
                    reason = "it is not text that a page can edit; replace it by the API"
                    raise Invalid.fields([FieldError("path", reason)])
                kept = {name: part for name, part in files.items() if name != given["path"]}
                removed = request.POST.get("then") == "remove"
                if not removed:
                    mode = "755" if given["program"] else "644"
                    content = given["content"].replace("\r\n", "\n")
                    kept[given["path"]] = TaskPart(path=given["path"], mode=mode, content=content)
                _save(access, row, kept, seen=posted_version(request))
                said = "is removed" if removed else "is saved"
                messages.success(request, f"{with_signs(given['path'])} {said}. The scenario is a draft again.")
                return redirect(here if removed else f"{here}?{urlencode({'path': given['path']})}")
    else:
        mode = files[path].mode if path in files else "644"
        form = FileForm(initial={"path": path, "content": text if is_plain else "", "program": mode == "755"})
    context = {
        "scenario": row,
        "form": form,
        "files": [(with_signs(name), f"{here}?{urlencode({'path': name})}", name == path) for name in sorted(files)],
        "is_known": path in files,
        "is_plain": is_plain,
        "version": request.POST.get("version", row.version),
        "new_url": f"{here}?{urlencode({'path': 'environment/new-file'})}",
        "api_path": f"/api/v1/scenarios/{row.pk}",
    }
    return render(request, "scenarios/editor/files.html", context, status=form.status)


def _save(access: Access, row: Scenario, files: dict[str, TaskPart], *, seen: int | None) -> None:
    parts = [files[path].model_dump(exclude_none=True) for path in sorted(files)]
    document = parse_scenario({**row.text.bundle, "files": parts}, taxonomy=taxonomy_of(access.project.settings))
    save_scenario(project=access.project, bundle=document, user=access.user, scenario=row, seen_version=seen)
