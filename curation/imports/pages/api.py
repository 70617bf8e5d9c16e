"""REST calls of imports: a form with a `file`, or JSON with a `source`."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router, Status

from curation.imports.kinds import ImportParams
from curation.imports.pages.preview import PreviewOut, preview
from curation.imports.sources.stored import store_upload
from curation.projects.access import enter
from curation.projects.models import Project, Scope
from curation.runs.launch import launch, require_scopes
from curation.runs.pages.schemas import RunOut, run_out
from curation.web.problems import Problem
from curation.web.text.storable import read_json, refuse_unstorable

router = Router(tags=["imports"])

FIELDS = ("kind", "name", "source", "upload", "strict")
_EXAMPLE = {"source": "https://example.org/turns.jsonl", "kind": "turns", "options": {"count": 2000, "seed": 1}}
_FORM: dict[str, Any] = {
    "file": {"type": "string", "format": "binary"},
    "kind": {"type": "string", "example": "turns"},
    "options": {"type": "string", "description": "JSON", "example": '{"count": 2000}'},
    "strict": {"type": "boolean"},
    "name": {"type": "string"},
}


def _body(title: str, *needed: str) -> dict[str, Any]:
    """Describe a request that needs these fields besides the source."""
    source = {**ImportParams.model_json_schema(), "title": title, "required": list(needed)}
    form = {"type": "object", "required": ["file", *needed], "properties": _FORM}
    content = {"application/json": {"schema": source, "example": _EXAMPLE}, "multipart/form-data": {"schema": form}}
    return {"requestBody": {"required": True, "content": content}}


@router.post(
    "/projects/{slug}/imports",
    response={202: RunOut},
    openapi_extra=_body("ImportParams", "kind"),
    summary="Import rows of a file or a URL",
)
def create_import(request: HttpRequest, response: HttpResponse, slug: str) -> Status[dict[str, object]]:
    """Good rows are imported; bad ones are listed among the run's items with the reason. `strict`: all rows or none."""
    access = enter(request, slug, Scope.RUN)
    params = _read_params(request, access.project)
    require_scopes(access, "import", params.model_dump())
    run = launch(project=access.project, kind="import", params=params.model_dump(), user=access.user)
    response["Location"] = f"/api/v1/runs/{run.pk}"
    return Status(202, run_out(run))


@router.post(
    "/projects/{slug}/imports/preview",
    response=PreviewOut,
    openapi_extra=_body("ImportPreviewParams"),
    summary="Preview a source before you import it",
)
def preview_import(request: HttpRequest, slug: str) -> PreviewOut:
    """Without a `kind` the rows tell it. If several kinds fit equally well, the answer is a 422 that names them."""
    access = enter(request, slug, Scope.RUN)
    params = _read_params(request, access.project, kind="")
    return preview(project=access.project, params=params)


def _read_params(request: HttpRequest, project: Project, **defaults: object) -> ImportParams:
    """Store an uploaded file and return the import's parameters."""
    if request.content_type == "multipart/form-data":
        given = defaults | {name: request.POST[name] for name in FIELDS if request.POST.get(name)}
        refuse_unstorable(given)
        given["options"] = read_json(request.POST.get("options") or "{}", path="options")
        params = ImportParams.parse(given)
        if file := request.FILES.get("file"):
            params.upload = store_upload(project=project, file=file, name=params.name or file.name or "")
        return params
    body = read_json(request.body)
    if not isinstance(body, dict):
        raise Problem("The body is not a JSON object. Send a form with a `file`, or JSON with a `source`.")
    return ImportParams.parse(defaults | body)
