"""Reads that are compiled once answer as Django's own do, and ask the database each time."""

from datetime import datetime, timedelta

import pytest
from django.db.models import QuerySet
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from curation.projects.models import Member, Project
from curation.web.database.queries import Prepared
from curation.web.ids import IdList
from tests.factories import make_bearer, make_member, make_project


def _of_project(project: int, role: str) -> QuerySet[Member]:
    return Member.objects.select_related("user").filter(project=project, role=role).order_by("id")


@pytest.mark.django_db
def test_the_first_row_of_the_query_comes_with_its_relations(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    project = make_project()
    make_member(make_project(), role="reviewer")
    make_member(project, role="viewer")
    users = [make_member(project, role="reviewer"), make_member(project, role="reviewer")]
    prepared = Prepared(_of_project, project=int, role=str)

    for _ in range(2):
        with django_assert_num_queries(1):
            found = prepared.first(project=project.pk, role="reviewer")
            assert found is not None
            assert found.user == users[0]
            assert found.user.date_joined == users[0].date_joined


@pytest.mark.django_db
def test_all_rows_of_many_ids_come_in_one_query(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    projects = [make_project() for _ in range(3)]
    prepared = Prepared(
        lambda ids, least: Project.objects.filter(pk__in=IdList(ids), pk__gte=least).order_by("pk").values_list("slug"),
        ids=list,
        least=int,
    )
    for wanted in (projects[:2], projects[1:], []):
        with django_assert_num_queries(1):
            found = prepared.all(ids=[project.pk for project in wanted], least=projects[0].pk)
        assert found == [(project.slug,) for project in wanted]
    assert prepared.first(ids=[project.pk for project in projects], least=projects[1].pk) == (projects[1].slug,)


@pytest.mark.django_db
def test_what_has_changed_since_is_seen() -> None:
    project = make_project()
    prepared = Prepared(lambda slug: Project.objects.filter(slug=slug), slug=str)
    assert prepared.first(slug=project.slug) == project

    Project.objects.filter(pk=project.pk).update(name="Another name", settings_json={"review": {"blind": False}})

    found = prepared.first(slug=project.slug)
    assert found is not None
    assert found.name == "Another name"
    assert found.settings.review.blind is False
    assert prepared.first(slug="no-such-project") is None


@pytest.mark.django_db
def test_times_are_compared_as_times() -> None:
    project = make_project()
    prepared = Prepared(lambda after: Project.objects.filter(created_at__gt=after), after=datetime)

    assert prepared.first(after=timezone.now() - timedelta(minutes=1)) == project
    assert prepared.first(after=timezone.now() + timedelta(minutes=1)) is None


@pytest.mark.django_db
def test_a_value_that_never_reaches_the_database_is_refused() -> None:
    prepared = Prepared(lambda slug: Project.objects.all(), slug=str)

    with pytest.raises(TypeError, match="slug"):
        prepared.first(slug="demo")


@pytest.mark.django_db
def test_a_removed_member_and_an_inactive_user_are_out_at_the_next_call(client: Client) -> None:
    project = make_project()
    users = [make_member(project), make_member(project)]
    headers = [make_bearer(user) for user in users]
    address = f"/api/v1/projects/{project.slug}"
    assert [client.get(address, headers=own).status_code for own in headers] == [200, 200]

    Member.objects.filter(user=users[0]).delete()
    users[1].is_active = False
    users[1].save()

    assert [client.get(address, headers=own).status_code for own in headers] == [404, 401]
