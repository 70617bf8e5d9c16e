"""Compression: of pages, and not of REST answers, whose ETag a script needs for writing."""

import gzip

import pytest
from django.test import Client

from tests.factories import make_bearer, make_project, make_user

pytestmark = pytest.mark.django_db


def test_a_page_is_compressed_for_a_browser_that_takes_it(client: Client) -> None:
    user = make_user(is_superuser=True)
    make_project("acme", user=user)
    client.force_login(user)
    packed = client.get("/p/acme/", headers={"Accept-Encoding": "gzip, deflate, br"})
    plain = client.get("/p/acme/")
    assert packed["Content-Encoding"] == "gzip" and "Content-Encoding" not in plain
    assert b"<h1" in gzip.decompress(packed.content) and b"<h1" in plain.content
    assert len(packed.content) < len(plain.content) / 2
    assert "Accept-Encoding" in packed["Vary"] and "Accept-Encoding" in plain["Vary"]


def test_a_rest_answer_keeps_the_etag_by_which_a_script_writes(client: Client) -> None:
    user = make_user(is_superuser=True)
    make_project("acme", user=user)
    answer = client.get("/api/v1/projects/acme", headers={**make_bearer(user), "Accept-Encoding": "gzip"})
    assert answer.status_code == 200 and answer["ETag"].startswith('"')
