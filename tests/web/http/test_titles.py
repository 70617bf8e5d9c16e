"""Titles of pages: tabs of a browser are told apart by them."""

import re
from collections import defaultdict

import pytest
from django.test import Client
from django.urls import reverse

from tests.e2e.addresses import OF_PROJECT, PAGES
from tests.factories import make_project, make_user

pytestmark = pytest.mark.django_db
OF_THE_SERVER = [name for name, args in PAGES.values() if args.__name__ == "_nothing"]


def test_no_two_pages_have_the_same_title(client: Client) -> None:
    user = make_user(is_superuser=True)
    make_project("acme", user=user)
    make_project("billing", user=user)  # with one project, the list of projects leads on to it
    client.force_login(user)
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


def test_the_address_of_a_form_says_where_one_is(client: Client) -> None:
    user = make_user()
    make_project("acme", user=user)
    client.force_login(user)
    answer = client.get(reverse("member-add", args=["acme"]))
    assert (answer.status_code, answer["Allow"]) == (405, "POST")
    assert "Go back to the page with the form." in answer.content.decode()
