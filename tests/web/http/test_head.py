"""HEAD: what GET says, without the body."""

import http.client
from urllib.parse import urlsplit

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django.live_server_helper import LiveServer

from tests.e2e.addresses import OF_PROJECT
from tests.factories import make_project, make_user

pytestmark = pytest.mark.django_db
HEADERS = ("Content-Type", "ETag", "Cache-Control", "Content-Disposition")


@pytest.fixture
def admin(client: Client) -> Client:
    user = make_user(is_superuser=True)
    make_project("acme", user=user)
    client.force_login(user)
    return client


def test_it_is_answered_on_pages_and_rest_calls_as_get_is(admin: Client) -> None:
    documented = admin.get("/api/v1/openapi.json").json()["paths"].items()
    calls = [path for path, item in documented if "get" in item and path.count("{") == path.count("{slug}")]
    paths = [reverse(name, args=["acme"]) for name in OF_PROJECT] + [path.replace("{slug}", "acme") for path in calls]
    assert len(calls) > 30
    for path in paths[::4]:  # one middleware answers it everywhere
        got, head = admin.get(path), admin.head(path)
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
