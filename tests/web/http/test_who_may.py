"""The lowest role that each call and each page of a project is open to, and what a stranger finds: nothing.

Calls come from OpenAPI and pages from the URL list, so a new one is tested.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from django.urls import get_resolver, resolve, reverse

from curation.projects.models import SCOPES_OF_ROLE, Member, Role, Scope
from tests.factories import make_bearer, make_member, make_project, make_user
from tests.web.http import test_refusals as refusals
from tests.web.http.test_refusals import CALLS, WRITING, Rows, call

pytestmark = pytest.mark.django_db
owner, rows = refusals.owner, refusals.rows
# The row that the `pk` of a page names, by the prefix of the URL's name; of any other prefix it has the same name.
NOUNS = {**dict.fromkeys(("lease", "answer", "history", "flags"), "sample_id"), "saved": "view_id", "row": "run_id"}
# Parts of an address that are no row, or a row under another name.
PARTS = {
    "index": "0", "turn": "0", "part": "env", "noun": "run", "batch": "none", "episode": "episode_id", "call": "1",
    "suggestion": "suggestion_id", "assignment": "assignment_id", "secret": "none", "name": "judge",
    "digest": "sha256", "verb": "cancel",
}  # fmt: skip
# `…` is `/projects/{slug}`. Other calls that write are curators', and other reads everybody's.
OF_REVIEWERS = """
    POST /samples/bulk; POST /samples/bulk/undo; GET …/batches; POST /leases/{lease_id}/heartbeat;
    DELETE /leases/{lease_id}; POST /samples/{sample_id}/decisions; POST /trajectories/{trajectory_id}/marks;
    POST /samples/{sample_id}/undo; POST /samples/{sample_id}/revisions; POST /samples/{sample_id}/clearances;
    DELETE /samples/{sample_id}/clearances/{rule}/{value_sha256}; POST …/views;
    POST /samples/{sample_id}/labels; GET /assignments/{assignment_id};
    POST /samples/{sample_id}/second-opinion; POST /samples/{sample_id}/flags/resolve;
    POST /samples/{sample_id}/suggestions; POST /revisions/{revision_id}/rejudge
"""
READS_OF_CURATORS = """
    GET …/disputes; GET …/agreement; GET …/models/{name}/usage; GET …/judge-trials/parts; GET …/judge-trials;
    GET …/assignments; GET …/audits; GET /audits/{audit_id}; GET …/guarantees; GET /guarantees/{guarantee_id};
    GET …/suggestions; POST …/evaluations/try-reset
"""
OF_ADMINS = """
    PATCH …; DELETE …; POST …/settings/preview; GET …/audit; GET …/audit/export; PUT …/instructions/{name};
    POST …/members; PATCH …/members/{username}; DELETE …/members/{username}; GET …/invitations;
    POST …/invitations; DELETE …/invitations/{invitation_id}; GET …/service-accounts; POST …/service-accounts;
    DELETE …/service-accounts/{username}; GET …/service-accounts/{username}/tokens;
    POST …/service-accounts/{username}/tokens; DELETE …/service-accounts/{username}/tokens/{token_id};
    POST …/models; PATCH …/models/{name}; DELETE …/models/{name}; POST …/models/{name}/apply-test;
    GET …/models/{name}/served; PATCH …/questions/{question_id}; DELETE …/questions/{question_id};
    POST …/questions; POST /reigns/{reign_id}/end; POST …/models/{name}/line-up; GET …/webhooks;
    POST …/webhooks; GET …/webhooks/{webhook_id}; DELETE …/webhooks/{webhook_id};
    POST …/webhooks/{webhook_id}/rotate; POST …/webhooks/{webhook_id}/test;
    GET …/webhooks/{webhook_id}/deliveries
"""
# Other pages are everybody's. Those with a mark are others' to send than to read.
PAGES = {
    Role.REVIEWER: """
    sample-suggestion-use sample-suggestion sample-suggest answer-editor-diff answer-editor lease-release
    lease-heartbeat sample-labels sample-draft sample-clear sample-marks sample-revise sample-decide
    sample-second-opinion-withdraw sample-second-opinion flags-resolve revision-rejudge sample-bulk-undo
    sample-bulk batch-list answer-facts review-undo queue-ahead-release queue-ahead queue-count queue
    saved-view-create sample-bulk-confirm
    """,
    Role.CURATOR: """
    start-sample split-check experiment-delete baseline-unpin baseline-pin evaluation-estimate
    evaluation-try-reset evaluation-estimate-live evaluation-new-live evaluation-new round-export round-start
    export-push export-keep recipe-delete export-formats export-new sample-rollout sample-adjudicate
    experiment-list! target-set assignment-withdraw assignment-list guarantee-withdraw audit-approve audit-extend
    guarantee-page agreement-page dispute-list suggestion-list record-clear exclusion-remove exclusion-set
    trajectory-prompts trial-list reign-crown trajectory-replay scenario-delete scenario-clear-axes
    scenario-gate scenario-edit scenario-part scenario-new scenario-gate-all saved-view-delete import-new
    model-usage run-control run-estimate run-new row-delete row-archive
    """,
    Role.ADMIN: """
    evaluation-line-up reign-end question-change model-apply-test model-served model-delete model-edit
    model-new webhook-delete webhook-rotate webhook-test webhook-list audit-list service-account-remove
    service-token-revoke service-token service-accounts member-remove member-change invitation-revoke
    member-add instructions-restore instructions-diff settings-change settings-toml guidelines-preview
    project-delete project-archive member-list! instructions! settings-rules! settings!
    """,
}


def pages(rows: Rows, **given: str) -> list[tuple[str, str]]:
    """The name and address of every page of a project, with its rows."""
    found = []
    for name, ways in get_resolver().reverse_dict.lists():
        (_, parts), *_ = ways[0][0]
        if not isinstance(name, str) or "slug" not in parts or name.startswith(("api-", "openapi-")):
            continue
        prefix = name.split("-")[0]
        keys = {part: PARTS.get(part, part) for part in parts} | {"pk": NOUNS.get(prefix, f"{prefix}_id")}
        values = {
            part: rows.ids[keys[part]] if part == "pk" else rows.ids.get(keys[part], keys[part]) for part in parts
        }
        found.append((name, reverse(name, kwargs=values | given)))
    return found


def is_lowest(user: User, role: str, send: Callable[[], Any]) -> bool:
    """Whether it is open to the role, and not to the one below."""
    roles = list(SCOPES_OF_ROLE)
    place, found = roles.index(role), []
    for one in roles[max(0, place - 1) : place + 1]:
        Member.objects.filter(user=user).update(role=one)
        with transaction.atomic():
            found.append(send().status_code)
            transaction.set_rollback(True)
    # 405: the address has no such method, for nobody.
    return found[-1] != 403 and set(found[:-1]) <= {403, 405}


def calls_in(text: str) -> set[str]:
    return {one.strip().replace("…", "/projects/{slug}") for one in re.sub(r"\s+", " ", text).split(";")}


def test_calls(client: Client, rows: Rows) -> None:
    user = make_member(rows.project)
    headers, wrong = make_bearer(user), []
    of_reviewers, read_by_curators, of_admins = map(calls_in, (OF_REVIEWERS, READS_OF_CURATORS, OF_ADMINS))
    for method, path in CALLS:
        name = f"{method} {path.removeprefix('/api/v1')}"
        by_curators = name in read_by_curators or (method, path) in WRITING
        others = Role.CURATOR if by_curators else Role.VIEWER
        role = Role.REVIEWER if name in of_reviewers else Role.ADMIN if name in of_admins else others
        if role != Role.VIEWER and not is_lowest(user, role, partial(call, client, rows, method, path, headers)):
            wrong.append(name)
    assert wrong == []


def test_pages(client: Client, rows: Rows) -> None:
    user = make_member(rows.project)
    client.raise_request_exception = False
    client.force_login(user)
    roles = {name: role for role, names in PAGES.items() for name in names.split()}
    wrong = []
    for name, address in pages(rows):
        read = roles.get(name, Role.VIEWER)
        if read == Role.VIEWER and getattr(resolve(address).func, "scope", "") != Scope.READ:
            wrong.append(("GET", name))
        for method, role in (("GET", read), ("POST", roles.get(f"{name}!", read))):
            if role != Role.VIEWER and not is_lowest(user, role, partial(client.generic, method, address)):
                wrong.append((method, name))
    assert wrong == []


def test_a_stranger_finds_no_page(client: Client, rows: Rows) -> None:
    """Signed out, as admin of another project, and with the rows of this one in an address of their own."""
    addresses = dict(pages(rows))
    wrong = {name for name, address in addresses.items() if client.get(address).status_code not in (302, 401, 405)}
    stranger = make_user()
    make_project("elsewhere", user=stranger)
    client.force_login(stranger)
    own = [address for _, address in pages(rows, slug="elsewhere") if re.search(r"/\d+/", address)]
    for address in (*addresses.values(), *own):
        # A form that is empty may be refused before its row is looked up.
        refused = {404, 405, 400, 422} if address in own else {404, 405}
        if {client.get(address).status_code, client.post(address).status_code} - refused:
            wrong.add(address)
    assert wrong == set() and len(own) > 90
