"""Confirms a form to the browser, which keeps a copy of the typed values until then (`static/js/kept-forms.js`)."""

import re

from django.http import HttpRequest, HttpResponse

from curation.web.http.middleware import Middleware, is_api

FIELD = "winnow_copy"
COOKIE = "winnow-copy-"
ID = re.compile(r"[0-9]{1,10}-[0-9]{1,10}")
# Long enough for the page that the form leads to.
SECONDS = 300


class CopyMiddleware(Middleware):
    """Sets a cookie for a form that was read: saved, or shown again with its errors (422)."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if request.method != "POST" or is_api(request) or not request.user.is_authenticated:
            return response
        copy = request.POST.get(FIELD, "")
        if ID.fullmatch(copy) and (response.status_code < 400 or response.status_code == 422):
            name, secure = f"{COOKIE}{copy}", request.is_secure()
            response.set_cookie(name, "read", max_age=SECONDS, samesite="Strict", secure=secure)
        return response
