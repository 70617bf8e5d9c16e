"""What holds for every page: its title, HEAD, compression, and the requests that it makes itself."""

import gzip
import http.client
import re
from collections import defaultdict
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from pytest_django.live_server_helper import LiveServer

from curation.projects.models import Project
from tests.e2e.addresses import OF_PROJECT, PAGES
from tests.factories import make_project, make_user

pytestmark = pytest.mark.django_db
OF_PAGES = [{"HX-Request": "true"}, {"X-Requested-With": "fetch"}, {"Sec-Fetch-Dest": "empty"}]
HEADERS = ("Content-Type", "ETag", "Cache-Control", "Content-Disposition")
OF_THE_SERVER = [name for name, args in PAGES.values() if args.__name__ == "_nothing"]


@pytest.fixture
def ada() -> User:
    return make_user("ada", is_superuser=True)


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


def test_answers_to_a_page_say_for_whom_they_are(client: Client, ada: User, signed_in: None) -> None:
    for headers in OF_PAGES:
        assert client.get("/p/acme/samples/", headers=headers)["X-Winnow-User"] == str(ada.pk)
    assert "X-Winnow-User" not in client.get("/p/acme/samples/")


def test_an_old_token_is_told_apart_from_a_missing_right(ada: User, project: Project) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(ada)
    answer = strict.post("/p/acme/settings/", headers={"HX-Request": "true"})
    assert (answer.status_code, answer["X-Winnow-Refused"]) == (403, "csrf")
    session = strict.get(reverse("session"), headers={"X-Requested-With": "fetch"}).json()
    assert (session["user"], session["name"]) == (ada.pk, ada.username)
    again = strict.post("/p/acme/settings/", headers={"HX-Request": "true", "X-CSRFToken": session["csrf"]})
    assert "X-Winnow-Refused" not in again
    # Without any cookie the token is missing too, but the person needs a session first.
    answer = Client(enforce_csrf_checks=True).post("/p/acme/settings/", headers={"HX-Request": "true"})
    assert (answer.status_code, answer["X-Winnow-Refused"]) == (401, "signed-out")


@pytest.mark.usefixtures("signed_in")
def test_it_is_answered_on_pages_and_rest_calls_as_get_is(client: Client) -> None:
    documented = client.get("/api/v1/openapi.json").json()["paths"].items()
    calls = [path for path, item in documented if "get" in item and path.count("{") == path.count("{slug}")]
    paths = [reverse(name, args=["acme"]) for name in OF_PROJECT] + [path.replace("{slug}", "acme") for path in calls]
    assert len(calls) > 30
    for path in paths[::4]:  # one middleware answers it everywhere
        got, head = client.get(path), client.head(path)
        assert (head.status_code, b"".join(head)) == (got.status_code, b""), path
        assert [head.get(name) for name in HEADERS] == [got.get(name) for name in HEADERS], path


@pytest.mark.django_db(transaction=True)
def test_no_body_stands_before_the_next_answer_of_the_connection(live_server: LiveServer) -> None:
    whole = b'{"status":"ok"}'
    connection = http.client.HTTPConnection(urlsplit(live_server.url).netloc, timeout=20)
    for method in ("HEAD", "GET", "HEAD", "GET"):
        connection.request(method, "/api/v1/health")
        answer = connection.getresponse()
        assert (answer.status, answer.headers["Content-Length"]) == (200, str(len(whole)))
        assert answer.read() == (whole if method == "GET" else b"")
    connection.close()


@pytest.mark.usefixtures("signed_in")
def test_a_page_is_compressed_for_a_browser_that_takes_it(client: Client) -> None:
    packed = client.get("/p/acme/", headers={"Accept-Encoding": "gzip, deflate, br"})
    plain = client.get("/p/acme/")
    assert packed["Content-Encoding"] == "gzip" and "Content-Encoding" not in plain
    assert b"<h1" in gzip.decompress(packed.content) and b"<h1" in plain.content
    assert len(packed.content) < len(plain.content) / 2
    assert "Accept-Encoding" in packed["Vary"] and "Accept-Encoding" in plain["Vary"]


def test_a_rest_answer_keeps_the_etag_by_which_a_script_writes(client: Client, headers: dict[str, str]) -> None:
    answer = client.get("/api/v1/projects/acme", headers={**headers, "Accept-Encoding": "gzip"})
    assert answer.status_code == 200 and answer["ETag"].startswith('"')


def test_no_two_pages_have_the_same_title(client: Client, ada: User, signed_in: None) -> None:
    make_project("billing", user=ada)  # with one project, the list of projects leads on to it
    paths = [reverse(name, args=["acme"]) for name in OF_PROJECT] + [reverse(name) for name in OF_THE_SERVER]
    launch = reverse("run-new", args=["acme"])
    kinds = re.findall(r'href="([^"]*\?kind=[^"]*)"', client.get(launch).content.decode())
    assert len(kinds) > 3
    titles = defaultdict(set)
    for path in {*paths, *kinds, reverse("server-audit")} - {launch}:
        answer = client.get(path)
        assert answer.status_code == 200, path
        found = re.search(r"<title>(.*?)</title>", answer.content.decode(), re.DOTALL)
        assert found and found[1].strip(), path
        titles[found[1]].add(path)

    assert [shared for shared in titles.values() if len(shared) > 1] == []


@pytest.mark.usefixtures("signed_in")
def test_the_address_of_a_form_says_where_one_is(client: Client) -> None:
    answer = client.get(reverse("member-add", args=["acme"]))
    assert (answer.status_code, answer["Allow"]) == (405, "POST")
    assert "Go back to the page with the form." in answer.content.decode()
