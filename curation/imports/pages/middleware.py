"""Uploads over the limit are refused by their announced length, before anything of them is read."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from curation.web.http.middleware import is_api
from curation.web.http.responses import problem_response
from curation.web.problems import TooLarge

# What a form brings besides its file.
AROUND_THE_FILE = 1024 * 1024


class UploadLimitMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        announced = request.META.get("CONTENT_LENGTH") or "0"
        if not announced.isdigit() or int(announced) <= settings.MAX_UPLOAD_BYTES + AROUND_THE_FILE:
            return self.get_response(request)
        problem = TooLarge(
            f"The upload has {int(announced) // 1024 // 1024} MB; this server takes "
            f"{settings.MAX_UPLOAD_BYTES // 1024 // 1024} MB (MAX_UPLOAD_MB). Compress it with gzip, or name a URL."
        )
        if is_api(request):
            return problem_response(request, problem)
        return render(request, "errors/problem.html", {"problem": problem}, status=problem.status)
