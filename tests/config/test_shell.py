"""What every page shows around its content: the sidebar and the pages of a section."""

import re

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from curation.notifications.models import Notification
from curation.projects.models import Role
from tests.factories import make_member, make_project, make_run, make_user

pytestmark = pytest.mark.django_db


def _section(client: Client, address: str) -> list[tuple[str, str]]:
    """Label of each page of the section, and whether it is this one."""
    page = client.get(address).content.decode()
    found = re.search(r'<nav class="subnav".*?</nav>', page, re.DOTALL)
    return re.findall(r'<a href="[^"]*"( aria-current="page")?>([^<]*)</a>', found[0]) if found else []


def test_a_section_links_the_pages_that_the_member_may_open(client: Client) -> None:
    project = make_project("acme")
    client.force_login(make_member(project, role=Role.REVIEWER))
    pages = _section(client, "/p/acme/thresholds/")
    assert [label for _, label in pages] == ["Thresholds", "Predictions"]
    assert [label for here, label in pages if here] == ["Thresholds"]
    page = client.get("/p/acme/thresholds/").content.decode()
    assert re.search(r'href="/p/acme/thresholds/" title="Thresholds" data-goto="h" aria-current="page"', page)

    assert page.count('aria-current="page"') == 2

    assert [label for _, label in _section(client, "/p/acme/samples/")] == [
        "List",
        "Flags",
        "Bulk decisions",
        "Clusters",
    ]
    client.force_login(make_member(project, role=Role.CURATOR))
    assert "Suggestions" in {label for _, label in _section(client, "/p/acme/samples/")}
    groups = re.findall(r'<div class="nav__title"[^>]*>([^<]*)<', client.get("/p/acme/").content.decode())
    assert groups == ["Data", "Review", "Quality", "Tasks", "Models", "Project"]


def test_the_palette_has_the_pages_that_the_sidebar_has_not(client: Client) -> None:
    project = make_project("acme")
    client.force_login(make_member(project, role=Role.REVIEWER))
    pages = re.findall(r'<a href="([^"]+)" data-page>([^<]+)</a>', client.get("/p/acme/").content.decode())
    assert ("/p/acme/samples/flags/", "Flags") in pages and ("/p/acme/settings/members/", "Settings: Members") in pages
    assert {"Agreement", "Import", "Settings: Audit log"}.isdisjoint(label for _, label in pages)
    assert all(client.get(url).status_code == 200 for url, _ in pages)


def test_a_page_of_one_row_has_no_section(client: Client) -> None:
    project = make_project("acme")
    client.force_login(make_member(project))
    run = make_run(project)
    assert _section(client, f"/p/acme/runs/{run.pk}/") == [] and _section(client, "/p/acme/") == []
    assert 'class="subnav"' not in client.get(f"/p/acme/runs/{run.pk}/").content.decode()


def test_the_frame_of_a_page_is_read_in_few_queries_and_knows_all_groups(client: Client) -> None:
    project = make_project("acme")
    user = make_member(project, role=Role.CURATOR)
    user.groups.add(*[Group.objects.create(name=name) for name in ("leads", "project-creators", "zoo")])
    Notification.objects.bulk_create(
        Notification(user=user, project=project, kind="mention", text="t", link="/") for _ in range(103)
    )
    client.force_login(user)
    client.get("/p/acme/samples/")
    with CaptureQueriesContext(connection) as queries:
        page = client.get("/p/acme/samples/").content.decode()

    assert len(queries) <= 9
    assert "Notifications, 100 unread" in page
    assert page.count(">New project</a>") == 1
    user.groups.clear()
    assert ">New project</a>" not in client.get("/p/acme/samples/").content.decode()


def test_an_operator_may_switch_to_every_project(client: Client) -> None:
    make_project("acme")
    make_project("other")
    client.force_login(make_user("root", is_superuser=True))
    page = client.get("/p/acme/samples/").content.decode()
    assert 'href="/p/acme/" aria-current="true"' in page and 'href="/p/other/"' in page
