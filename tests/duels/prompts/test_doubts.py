"""Doubtful records: found by the imports, shown, never used by a challenger until a curator clears them."""

import json
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from curation.duels.models import Answer, PullRequest
from curation.duels.prompts.doubts import compare_records
from curation.projects.models import AuditEntry, Project, Role
from curation.runs.models import ItemState
from tests.duels.running import Models, run_to_end
from tests.factories import make_bearer, make_endpoint, make_member, make_project, make_user
from tests.imports.bringing import bring

pytestmark = pytest.mark.django_db(transaction=True)
PATCH = "--- a/{0}\n+++ b/{0}\n@@ -3,2 +3,2 @@\n-    total = round_total(lines)\n+    total = settle(lines)\n"
REPO = "acme/billing"


def turns(instance: str, *shown: str) -> dict[str, Any]:
    messages = [{"role": "user", "content": "Totals are wrong."}]
    for text in shown:
        messages += [
            {"role": "assistant", "content": "THOUGHT: I look.\n\n```bash\nls\n```"},
            {"role": "user", "content": text},
        ]
    messages.append({"role": "assistant", "content": "THOUGHT: Done.\n\n```bash\ntrue\n```"})
    return {"instance_id": instance, "repo": REPO, "messages": messages}


def record(instance: str, path: str = "billing/totals.py", **values: Any) -> dict[str, Any]:
    return {"instance_id": instance, "issue": "Totals are wrong.", "patch": PATCH.format(path), "repo": REPO} | values


def doubts(project: Project) -> dict[str, bool]:
    return {row.instance_id: row.is_doubtful for row in PullRequest.objects.of(project)}


def test_records_are_compared_whichever_import_comes_first() -> None:
    project = make_project()
    bring(project, "pr_records", [record("early-1"), record("early-2", "skylark/wings.py")])
    assert doubts(project) == {"early-1": False, "early-2": False}, "nothing to compare with yet"

    shown = [turns(name, "billing/totals.py") for name in ("early-1", "early-2", "late-1", "late-2")]
    assert bring(project, "turns", shown).result["doubtful"] == 1
    late = bring(project, "pr_records", [record("late-1"), record("late-2", repo="other/skylark")]).result

    assert (late["records"], late["doubtful"]) == (2, 1)
    assert doubts(project) == {"early-1": False, "early-2": True, "late-1": False, "late-2": True}
    assert "other/skylark" in PullRequest.objects.get(instance_id="late-2").doubt
    assert bring(project, "pr_records", [record("early-2")]).result["updated"] == 1
    assert doubts(project)["early-2"] is False, "the right record is no longer doubtful"


def test_records_of_many_instances_are_compared_by_as_many_queries_as_those_of_one(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    project, names = make_project(), [f"task-{number}" for number in range(9)]
    bring(project, "pr_records", [record(name) for name in names])
    bring(project, "turns", [turns(name, "billing/totals.py") for name in names[:5]])

    with transaction.atomic():
        for instances in (names[:1], names):
            with django_assert_num_queries(5):  # ids, records without a prompt, those with one, prompts, sessions
                assert compare_records(project, instances) == 0


def test_only_records_that_a_prompt_needs_are_kept_unless_asked_otherwise() -> None:
    project = make_project()
    bring(project, "turns", [turns("needed", "billing/totals.py")])
    rows = [record("needed"), record("unneeded-1"), record("unneeded-2")]

    result = bring(project, "pr_records", rows).result
    assert (result["records"], result["not_needed"], result["duplicates"]) == (1, 2, 0)
    assert set(doubts(project)) == {"needed"}

    result = bring(project, "pr_records", rows, options={"keep_all": True}).result
    assert (result["records"], result["not_needed"], result["duplicates"]) == (2, 0, 1)


def test_a_challenger_uses_a_doubtful_record_only_after_a_curator_cleared_it(models: Models, client: Client) -> None:
    owner = make_user()
    project = make_project("acme", user=owner)
    make_endpoint(project, "challenger")
    bring(project, "turns", [turns("sure", "billing/totals.py"), turns("doubtful", "billing/totals.py")])
    bring(project, "pr_records", [record("sure"), record("doubtful", "skylark/wings.py")])

    run = run_to_end(project, "challenger", model="challenger")

    skipped = run.items.filter(state=ItemState.SKIPPED).values_list("reason", flat=True)
    assert skipped and all("doubtful pull-request record" in reason for reason in skipped)
    assert set(Answer.objects.values_list("prompt__instance_id", flat=True)) == {"sure"}
    assert "skylark" not in models.text_sent("challenger")

    path, body = "/api/v1/projects/acme/pull-requests", json.dumps({"instance_ids": ["doubtful"]})
    reviewer = make_bearer(make_member(project, role=Role.REVIEWER))
    listed = client.get(f"{path}?doubtful=true", headers=reviewer).json()["data"]
    assert [(row["instance_id"], row["doubtful"]) for row in listed] == [("doubtful", True)]
    assert "skylark/wings.py" in listed[0]["doubt"]
    assert client.post(f"{path}/clear", body, "application/json", headers=reviewer).status_code == 403
    cleared = client.post(f"{path}/clear", body, "application/json", headers=make_bearer(owner))
    assert cleared.json() == {"cleared": 1}
    assert client.post(f"{path}/clear", body, "application/json", headers=make_bearer(owner)).status_code == 404
    entry = AuditEntry.objects.get(action="pull_request.clear_doubt")
    assert (entry.subject, list(entry.data["doubts"])) == ("doubtful", ["doubtful"])

    run_to_end(project, "challenger", model="challenger")
    assert set(Answer.objects.values_list("prompt__instance_id", flat=True)) == {"sure", "doubtful"}


def test_pages_show_the_doubt_and_clear_it(client: Client) -> None:
    owner = make_user()
    project = make_project("acme", user=owner)
    bring(project, "turns", [turns("doubtful", "billing/totals.py")])
    bring(project, "pr_records", [record("doubtful", "skylark/wings.py")])
    client.force_login(owner)
    prompt = project.prompts.order_by("-turn_index")[0]
    page = reverse("prompt-page", args=["acme", prompt.pk])

    listed = client.get(reverse("prompt-list", args=["acme"]), {"doubtful": "true"}).content.decode()
    assert "show no file, directory or identifier" in listed and "Clear the record of doubtful" in listed
    assert "Clear the record" in client.get(page).content.decode()
    client.post(reverse("record-clear", args=["acme"]), {"instance_id": "doubtful", "next": page})
    after = client.get(page).content.decode()
    assert "Clear the record" not in after
    assert "A curator cleared a doubt" in after
    assert doubts(project) == {"doubtful": False}
