"""`Idempotency-Key`: the same key and body give the first answer again, another body with it is a conflict."""

import hashlib
from collections.abc import Callable

from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse

from curation.web.models import IdempotentAnswer
from curation.web.problems import Conflict, Problem

HEADER = "Idempotency-Key"
KEPT = "winnow_kept_body"
Answer = Callable[[HttpRequest], HttpResponse]


def keep_instead(response: HttpResponse, body: bytes) -> None:
    """What is stored for a replay in place of the answer's own body, which holds something that is shown only once."""
    setattr(response, KEPT, body)


def answer_once(request: HttpRequest, get_response: Answer) -> HttpResponse:
    """Runs the request and its answer's record in one transaction, so that a killed server leaves neither or both."""
    key = request.headers[HEADER]
    if not 0 < len(key) <= 255:
        raise Problem(f"{HEADER} must have 1 to 255 characters.", code="bad_idempotency_key")
    owner, digest = _owner(request), _request_hash(request)
    kept = IdempotentAnswer.objects.filter(owner=owner, key=key).first()
    if kept is None:
        try:
            with transaction.atomic():
                # A second request with this key waits here until the first has committed.
                row = IdempotentAnswer.objects.create(owner=owner, key=key, request_hash=digest)
                response = get_response(request)
                if response.status_code >= 400:
                    transaction.set_rollback(True)
                    return response
                row.status, row.body = response.status_code, getattr(response, KEPT, response.content)
                row.content_type = response.get("Content-Type", "")
                row.location = response.get("Location", "")
                row.save()
                return response
        except IntegrityError:
            kept = IdempotentAnswer.objects.filter(owner=owner, key=key).first()
            if kept is None:
                raise
    if kept.request_hash != digest:
        raise Conflict(f"{HEADER} {key!r} was used for another request.", code="idempotency_key_reused")
    return _replay(kept)


def _replay(kept: IdempotentAnswer) -> HttpResponse:
    response = HttpResponse(bytes(kept.body), status=kept.status, content_type=kept.content_type)
    response["Idempotent-Replayed"] = "true"
    if kept.location:
        response["Location"] = kept.location
    return response


def _owner(request: HttpRequest) -> str:
    credential = request.headers.get("Authorization") or request.COOKIES.get("sessionid", "")
    return hashlib.sha256(credential.encode()).hexdigest()


def _request_hash(request: HttpRequest) -> str:
    digest = hashlib.sha256(f"{request.method} {request.get_full_path()}\n".encode())
    if request.content_type == "multipart/form-data":
        for name, values in sorted(request.POST.lists()):
            digest.update(f"{name}={values}\n".encode())
        for name in sorted(request.FILES):
            for upload in request.FILES.getlist(name):
                digest.update(f"{name}:{upload.name}\n".encode())
                for chunk in upload.chunks():
                    digest.update(chunk)
                upload.seek(0)
    else:
        digest.update(request.body)
    return digest.hexdigest()
