"""Rows by a statement that is put together once."""

from decimal import Decimal

import pytest
from django.utils import timezone

from curation.llm.models import Endpoint, EndpointPace, EndpointShare
from curation.projects.models import Project
from curation.web.upsert import Upsert
from tests.factories import make_endpoint, make_project

SHARES = Upsert(
    EndpointShare, ["endpoint_id", "holder", "wanted", "granted", "seen_at"], unique=["endpoint_id", "holder"]
)


@pytest.mark.django_db
def test_rows_get_their_keys_in_their_order() -> None:
    endpoint = make_endpoint(make_project(), "m")
    keys = SHARES.write([(endpoint.pk, holder, 1, 2, 3.5) for holder in "cab"])
    found = EndpointShare.objects.in_bulk(keys)
    assert [found[key].holder for key in keys] == ["c", "a", "b"]
    assert SHARES.write([]) == []


@pytest.mark.django_db
def test_a_row_takes_the_place_of_the_one_with_the_same_columns() -> None:
    endpoint = make_endpoint(make_project(), "m")
    (first,) = SHARES.write([(endpoint.pk, "a", 1, 1, 1.0)])
    again, other = SHARES.write([(endpoint.pk, "a", 7, 5, 2.0), (endpoint.pk, "b", 1, 1, 1.0)])
    assert (again, EndpointShare.objects.count()) == (first, 2)
    row = EndpointShare.objects.get(pk=first)
    assert (row.wanted, row.granted, row.seen_at) == (7, 5, 2.0)
    assert other != first


@pytest.mark.django_db
def test_values_come_back_as_the_model_had_them_and_what_is_to_be_kept_stays() -> None:
    """JSON, decimals, times, NULL and text that SQL would stumble over."""
    project = make_project()
    endpoints = Upsert(Endpoint, unique=["project_id", "name"], kept=["created_at"])
    made = Endpoint(
        project=project, name="it's 100 %s", model="m", params={"a": [1, None, "ü"]}, price_in=Decimal("1.5")
    )
    before = timezone.now()
    endpoints.save([made])
    found = Endpoint.objects.get(pk=made.pk)
    assert (found.name, found.params, found.price_in, found.price_out) == (
        *("it's 100 %s", {"a": [1, None, "ü"]}),
        *(Decimal("1.5"), None),
    )
    assert found.created_at >= before
    endpoints.save([anew := Endpoint(project=project, name=found.name, model="other", price_out=Decimal("2"))])
    now = Endpoint.objects.get(pk=found.pk)
    assert anew.pk == found.pk
    assert (now.model, now.params, now.price_in, now.price_out) == ("other", {}, None, Decimal("2"))
    assert now.created_at == found.created_at


@pytest.mark.django_db
def test_a_key_that_is_no_automatic_one_is_a_column_like_the_others() -> None:
    endpoint = make_endpoint(make_project(), "m")
    paces = Upsert(EndpointPace, unique=["endpoint_id"])
    paces.save([EndpointPace(endpoint=endpoint, cooldown_until=1.0)])
    paces.save([EndpointPace(endpoint=endpoint, cooldown_until=2.0)])
    assert EndpointPace.objects.get().cooldown_until == 2.0


def test_a_column_without_a_value_is_refused_where_the_statement_is_defined() -> None:
    with pytest.raises(ValueError, match="Project: no value for .*slug"):
        Upsert(Project, ["name"])
