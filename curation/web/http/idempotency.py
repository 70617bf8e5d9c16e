"""`Idempotency-Key`: the same key and body return the first response again; another body is a conflict."""

import hashlib
from collections.abc import Callable
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from curation.web.models import IdempotentResponse
from curation.web.problems import Conflict, Problem

HEADER = "Idempotency-Key"
STORED_FOR = timedelta(hours=24)
STORED_BODY = "winnow_stored_body"
GetResponse = Callable[[HttpRequest], HttpResponse]


def store_instead(response: HttpResponse, body: bytes) -> None:
    """Store `body` for a repeated request instead of the response's own, which contains a secret shown only once."""
    setattr(response, STORED_BODY, body)


def respond_once(request: HttpRequest, get_response: GetResponse) -> HttpResponse:
    """Run the request and store its response in one transaction: if the server is killed, neither remains."""
    key = request.headers[HEADER]
    if not 0 < len(key) <= 255:
        raise Problem(f"{HEADER} must have 1 to 255 characters.", code="bad_idempotency_key")
    owner, digest = _owner(request), _request_hash(request)
    stored = IdempotentResponse.objects.filter(owner=owner, key=key).first()
    if stored is None:
        try:
            with transaction.atomic():
                # A second request with this key waits here until the first has committed.
                row = IdempotentResponse.objects.create(owner=owner, key=key, request_hash=digest)
                response = get_response(request)
                if response.status_code >= 400:
                    transaction.set_rollback(True)
                    return response
                row.status, row.body = response.status_code, getattr(response, STORED_BODY, response.content)
                row.content_type = response.get("Content-Type", "")
                row.location = response.get("Location", "")
                row.save()
                return response
        except IntegrityError:
            stored = IdempotentResponse.objects.filter(owner=owner, key=key).first()
            if stored is None:
                raise
    if stored.request_hash != digest:
        raise Conflict(f"{HEADER} {key!r} was used for another request.", code="idempotency_key_reused")
    return _replay(stored)


def delete_expired() -> None:
    """Delete responses older than `STORED_FOR`; their keys can be used again."""
    expired = IdempotentResponse.objects.filter(created_at__lt=timezone.now() - STORED_FOR)
    if expired.exists():  # on SQLite even a DELETE of nothing waits for the write lock
        expired.delete()


def _replay(stored: IdempotentResponse) -> HttpResponse:
    response = HttpResponse(bytes(stored.body), status=stored.status, content_type=stored.content_type)
    response["Idempotent-Replayed"] = "true"
    if stored.location:
        response["Location"] = stored.location
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
