"""The requests that a page makes itself: after signing out they are refused, instead of getting the sign-in page."""

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from tests.factories import make_project, make_user

pytestmark = pytest.mark.django_db
OF_PAGES = [{"HX-Request": "true"}, {"X-Requested-With": "fetch"}, {"Sec-Fetch-Dest": "empty"}]


def project_pages() -> list[str]:
    """An address of each view of a project that takes nothing but numbers."""

    def of(patterns: list[URLPattern | URLResolver], prefix: str = "") -> list[str]:
        found = []
        for pattern in patterns:
            route = prefix + str(pattern.pattern)
            if isinstance(pattern, URLResolver):
                found += [] if route.startswith("api/") else of(pattern.url_patterns, route)
            elif route.startswith("p/<slug:slug>/"):
                found.append("/" + route.replace("<slug:slug>", "acme").replace("<int:pk>", "1"))
        return [path for path in found if "<" not in path]

    return of(get_resolver().url_patterns)


@pytest.mark.parametrize("headers", OF_PAGES)
@pytest.mark.parametrize("method", ["get", "post"])
def test_no_fragment_gets_the_sign_in_page(client: Client, headers: dict[str, str], method: str) -> None:
    make_project("acme")
    paths = project_pages()
    assert len(paths) > 60
    for path in paths:
        answer = getattr(client, method)(path, headers=headers)
        if answer.status_code == 405:
            continue
        assert (answer.status_code, answer["X-Winnow-Refused"]) == (401, "signed-out"), path
        assert b"<form" not in answer.content
        assert answer["X-Winnow-User"] == ""


def test_a_page_leads_to_the_sign_in_page_and_back(client: Client) -> None:
    answer = client.get("/p/acme/samples/", headers={"Accept": "text/html", "Sec-Fetch-Dest": "document"})
    assert answer["Location"] == "/login/?next=/p/acme/samples/"


def test_answers_to_a_page_say_for_whom_they_are(client: Client) -> None:
    user = make_user()
    make_project("acme", user=user)
    client.force_login(user)
    for headers in OF_PAGES:
        assert client.get("/p/acme/samples/", headers=headers)["X-Winnow-User"] == str(user.pk)
    assert "X-Winnow-User" not in client.get("/p/acme/samples/")


def test_an_old_token_is_told_apart_from_a_missing_right(client: Client) -> None:
    user = make_user()
    make_project("acme", user=user)
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(user)
    answer = strict.post("/p/acme/settings/", headers={"HX-Request": "true"})
    assert (answer.status_code, answer["X-Winnow-Refused"]) == (403, "csrf")
    session = strict.get(reverse("session"), headers={"X-Requested-With": "fetch"}).json()
    assert (session["user"], session["name"]) == (user.pk, user.username)
    again = strict.post("/p/acme/settings/", headers={"HX-Request": "true", "X-CSRFToken": session["csrf"]})
    assert "X-Winnow-Refused" not in again
    # Without any cookie the token is missing too, but the person needs a session first.
    answer = Client(enforce_csrf_checks=True).post("/p/acme/settings/", headers={"HX-Request": "true"})
    assert (answer.status_code, answer["X-Winnow-Refused"]) == (401, "signed-out")
