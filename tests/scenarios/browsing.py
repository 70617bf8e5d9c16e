"""The common parts of the tests of pages and calls."""

from typing import Any

from django.test import Client

from curation.projects.models import Project
from tests.factories import BUNDLE, make_bearer, make_project, make_user

GIVEN: dict[str, Any] = {**BUNDLE, "name": "greeting"}


class Caller:
    """A script with a token; answers are parsed."""

    def __init__(self, client: Client, *scopes: str) -> None:
        self.user = make_user()
        self.project: Project = make_project("shell", user=self.user)
        self.client, self.headers = client, make_bearer(self.user, *scopes)

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        given = {} if method == "GET" else {"data": "" if body is None else body, "content_type": "application/json"}
        call = getattr(self.client, method.lower())
        return call(f"/api/v1{path}", **given, headers={**self.headers, **headers})
