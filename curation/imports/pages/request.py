"""An import as a request asks for it: a form with a file, or JSON with a source."""

import orjson
from django.core.files import File
from django.http import HttpRequest
from pydantic import ValidationError

from curation.imports.kinds import ImportParams
from curation.imports.sources.stored import store_upload
from curation.projects.models import Project
from curation.web.problems import FieldError, Invalid, Problem

FIELDS = ("kind", "name", "source", "upload", "strict")


def read_request(request: HttpRequest, project: Project) -> ImportParams:
    """Stores an uploaded file and returns what is asked for. Raises `Invalid` with the field, or `TooLarge`."""
    if request.content_type == "multipart/form-data":
        given = {name: request.POST[name] for name in FIELDS if request.POST.get(name)}
        options = request.POST.get("options") or "{}"
        try:
            read = orjson.loads(options)
        except orjson.JSONDecodeError as error:
            raise _refusal("options", f"not JSON: {error}") from None
        params = _checked({**given, "options": read})
        file = request.FILES.get("file")
        if file is None:
            return params
        key = store_upload(project=project, file=File(file.file, name=file.name), name=params.name or file.name or "")
        return params.model_copy(update={"upload": key})
    try:
        body = orjson.loads(request.body)
    except orjson.JSONDecodeError as error:
        raise Problem(f"The body is not JSON: {error}. Send a form with a `file`, or JSON with a `source`.") from None
    if not isinstance(body, dict):
        raise Problem("The body is not a JSON object. Send a form with a `file`, or JSON with a `source`.")
    return _checked(body)


def _checked(given: dict[str, object]) -> ImportParams:
    try:
        return ImportParams.model_validate(given)
    except ValidationError as error:
        errors = [FieldError(".".join(map(str, entry["loc"])), entry["msg"]) for entry in error.errors()]
        raise Invalid.fields(errors) from None


def _refusal(path: str, message: str) -> Invalid:
    return Invalid(f"{path}: {message}", errors=[FieldError(path, message)])
