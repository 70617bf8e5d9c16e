"""Nobody overwrites unseen changes by REST: `If-Match` on every change of an object."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import Model
from django.test import Client

from curation.assignments.models import Assignment
from curation.evaluations.models import Split
from curation.exports.models import SavedRecipe
from curation.guarantees.models import Audit
from curation.labels.models import Question
from curation.projects.access import Access, access_of
from curation.review.decisions.withdraw_assignment import withdraw_assignment
from curation.review.guarantees.carry_out import approve_unseen
from curation.review.guarantees.draw import extend_audit
from curation.scenarios.bundles.document import stored_bundle
from curation.scenarios.bundles.save import delete_scenario, replace_bundle
from curation.scenarios.claims.check import clear_axes
from curation.scenarios.models import Scenario
from curation.trajectories.models import Trajectory
from curation.web.problems import NotFound
from curation.webhooks.models import Webhook
from tests.factories import make_bearer
from tests.web.http.test_refusals import DOCUMENT, Rows
from tests.web.http.test_refusals import owner as owner
from tests.web.http.test_refusals import rows as rows

pytestmark = pytest.mark.django_db

# Calls that change or delete without a version, each with the reason.
WITHOUT_VERSION = {
    "delete_lease": "a lease is its holder's own",
    "delete_clearance": "a clearance is given and taken, never edited",
    "put_instructions": "the body has the version, which is required",
    "delete_token": "a token is never edited",
    "delete_service_token": "a token is never edited",
    "delete_invitation": "an invitation is never edited",
    "delete_exclusions": "the body names the instances",
}
# Where an object is read, and what changes it; `{}` are those of `Rows`.
CHANGED: list[tuple[str, str, str, Any]] = [
    (
        "/projects/{slug}/questions/{question_id}",
        "PATCH",
        "/projects/{slug}/questions/{question_id}",
        {"required": True},
    ),
    ("/projects/{slug}/webhooks/{webhook_id}", "POST", "/projects/{slug}/webhooks/{webhook_id}/rotate", {}),
    ("/projects/{slug}/targets/{username}", "PUT", "/projects/{slug}/targets/{username}", {"per_day": 7}),
    (
        "/projects/{slug}/recipes/weekly",
        "POST",
        "/projects/{slug}/recipes",
        {"name": "weekly", "recipe": {"formats": ["kto"]}},
    ),
]
DELETED = [
    "/projects/{slug}/questions/{question_id}",
    "/projects/{slug}/webhooks/{webhook_id}",
    "/projects/{slug}/recipes/weekly",
    "/assignments/{assignment_id}",
    "/splits/{split_id}",
]


def test_every_change_of_an_object_takes_the_version_that_was_seen() -> None:
    changes = {
        operation["operationId"]: any(one["name"] == "If-Match" for one in operation.get("parameters", ()))
        for methods in DOCUMENT["paths"].values()
        for method, operation in methods.items()
        if method in {"patch", "put", "delete"}
    }
    assert {name for name, takes in changes.items() if not takes} == set(WITHOUT_VERSION)
    for methods in DOCUMENT["paths"].values():
        for operation in methods.values():
            if any(one["name"] == "If-Match" for one in operation.get("parameters", ())):
                assert "412" in operation["responses"], operation["operationId"]


def _send(rows: Rows, owner: User, method: str, path: str, body: Any = None, **headers: str) -> Any:
    client = Client(headers={**make_bearer(owner), **headers})
    sent = {} if body is None else {"data": body, "content_type": "application/json"}
    return client.generic(method, rows.address(f"/api/v1{path}"), **_encoded(sent))


def _with_free_split(rows: Rows) -> None:
    """Nothing rests on this one."""
    rows.ids["split_id"] = str(Split.objects.create(project=rows.project, name="free", rows_count=1).pk)


def _encoded(sent: dict[str, Any]) -> dict[str, Any]:
    return {**sent, "data": json.dumps(sent["data"])} if "data" in sent else sent


@pytest.mark.parametrize(("read", "method", "path", "body"), CHANGED)
def test_a_change_of_what_was_not_seen_is_refused_with_what_is_there(
    rows: Rows, owner: User, read: str, method: str, path: str, body: Any
) -> None:
    seen = _send(rows, owner, "GET", read)["ETag"]
    assert _send(rows, owner, method, path, body, **{"If-Match": seen}).status_code in {200, 201}
    stale = _send(rows, owner, method, path, body, **{"If-Match": seen})
    assert stale.status_code == 412 and stale.json()["code"] == "stale_version"
    current = stale.json()["current"]
    assert len(current) > 1, "it says what is there now, not only that it is another version"
    now = _send(rows, owner, "GET", read)
    assert now["ETag"].strip('"').startswith(current["version"])
    assert _send(rows, owner, method, path, body, **{"If-Match": now["ETag"]}).status_code in {200, 201}
    assert _send(rows, owner, method, path, body).status_code in {200, 201}


@pytest.mark.parametrize("path", DELETED)
def test_what_was_not_seen_is_not_deleted(rows: Rows, owner: User, path: str) -> None:
    _with_free_split(rows)
    seen = _send(rows, owner, "GET", path)["ETag"]
    assert _send(rows, owner, "DELETE", path, **{"If-Match": '"another"'}).status_code == 412
    assert _send(rows, owner, "GET", path).status_code == 200
    assert _send(rows, owner, "DELETE", path, **{"If-Match": seen}).status_code in {202, 204}
    assert _send(rows, owner, "GET", path).status_code == 404


def test_a_split_is_archived_as_it_was_seen(rows: Rows, owner: User) -> None:
    _with_free_split(rows)
    seen, change = _send(rows, owner, "GET", "/splits/{split_id}")["ETag"], {"archived": True}
    assert _send(rows, owner, "PATCH", "/splits/{split_id}", change, **{"If-Match": '"another"'}).status_code == 412
    done = _send(rows, owner, "PATCH", "/splits/{split_id}", change, **{"If-Match": seen})
    assert done.status_code == 200 and done["ETag"] != seen
    assert _send(rows, owner, "GET", "/splits/{split_id}")["ETag"].startswith(done["ETag"].rstrip('"'))


def test_a_refused_change_writes_nothing(rows: Rows, owner: User) -> None:
    wrong = {"If-Match": '"another"'}
    _send(rows, owner, "PATCH", "/projects/{slug}/questions/{question_id}", {"title": "Other"}, **wrong)
    _send(rows, owner, "POST", "/projects/{slug}/recipes", {"name": "weekly", "recipe": {"formats": ["kto"]}}, **wrong)
    _send(rows, owner, "POST", "/projects/{slug}/webhooks/{webhook_id}/rotate", {}, **wrong)
    assert Question.objects.get().title != "Other"
    assert SavedRecipe.objects.get().document == {"formats": ["dpo"]}
    assert Webhook.objects.get().nonce == "n"


def _change_bundle(access: Access, row: Scenario) -> None:
    replace_bundle(access.project, row, stored_bundle(row.text.bundle), user=access.user)


LOCKING: list[tuple[type[Model], Callable[[Access, Any], object]]] = [
    (Assignment, lambda access, row: withdraw_assignment(access=access, assignment=row)),
    (Audit, extend_audit),
    (Audit, approve_unseen),
    (Scenario, lambda access, row: delete_scenario(access=access, scenario=row)),
    (Scenario, lambda access, row: clear_axes(access=access, scenario=row, axes=["task"], comment="It is right.")),
    (Scenario, _change_bundle),
]


@pytest.mark.parametrize(("model", "change"), LOCKING)
def test_a_row_that_somebody_deletes_before_it_is_locked_is_not_found(
    rows: Rows, owner: User, model: type[Model], change: Callable[[Access, Any], object]
) -> None:
    """Of two who withdraw an assignment at once, the second finds nothing."""
    access = access_of(owner, rows.project)
    Trajectory.objects.all().delete()
    related = ["text"] if model is Scenario else []
    row = model._default_manager.select_related(*related).get()
    assert access is not None
    model._default_manager.filter(pk=row.pk).delete()
    with pytest.raises(NotFound):
        change(access, row)
