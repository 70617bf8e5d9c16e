"""Prompts, records and exclusions over REST and on pages: contents, filters, permissions."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from curation.duels.models import Duel, Exclusion
from curation.projects.models import AuditEntry, Project, Role
from curation.samples.models import Sample
from tests.factories import make_bearer, make_duel, make_member, make_project, make_prompt, make_pull_request

pytestmark = pytest.mark.django_db
JSON = "application/json"


def get(client: Client, ada: User, path: str, **query: Any) -> Any:
    return client.get(f"/api/v1{path}", query, headers=make_bearer(ada))


def ids(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.content
    return [row["instance_id"] for row in answer.json()["data"]]


def test_prompts_are_listed_with_record_and_exclusion_and_filtered(client: Client, ada: User, project: Project) -> None:
    for name in ("one", "two", "three"):
        make_prompt(project, instance_id=name, repo=f"acme/{name}", source=f"{name}.jsonl")
    make_prompt(make_project(), instance_id="of another project")
    make_pull_request(project, "one")
    Exclusion.objects.create(project=project, instance_id="two", reason="broken environment")
    path = "/projects/acme/prompts"

    assert ids(get(client, ada, path)) == ["three", "two", "one"]
    assert ids(get(client, ada, path, has_record="true")) == ["one"]
    assert ids(get(client, ada, path, excluded="false")) == ["three", "one"]
    assert ids(get(client, ada, path, excluded="true")) == ["two"]
    assert ids(get(client, ada, path, repo="acme/one,acme/two")) == ["two", "one"]
    assert ids(get(client, ada, path, source="one.jsonl", instance_id="one")) == ["one"]
    assert get(client, ada, path, sources="x").status_code == 400
    page = get(client, ada, path, limit=2, count="true").json()
    assert page["total"] == 3
    assert ids(get(client, ada, path, limit=2, cursor=page["next_cursor"])) == ["one"]
    row = page["data"][1]
    assert (row["has_record"], row["exclusion"]) == (False, "broken environment")


def test_one_prompt_has_its_history_and_reference(client: Client, ada: User, project: Project) -> None:
    prompt = make_prompt(project, instance_id="one")

    found = get(client, ada, f"/prompts/{prompt.pk}").json()

    assert [message["role"] for message in found["history"]] == ["system", "user"]
    assert found["reference"]["role"] == "assistant"
    assert get(client, ada, "/prompts/none").status_code == 404


def test_a_blind_reviewer_sees_the_reference_when_its_samples_are_decided(client: Client, project: Project) -> None:
    duel = make_duel(project)
    reviewer, curator = make_member(project), make_member(project, role=Role.CURATOR)
    path, page = f"/prompts/{duel.prompt_id}", reverse("prompt-page", args=["acme", duel.prompt_id])

    def shown(ada: User) -> tuple[bool, bool]:
        client.force_login(ada)
        found = get(client, ada, path).json()["reference"]
        return found == duel.prompt.text.reference, "sed -n" in client.get(page).content.decode()

    assert shown(reviewer) == (True, True), "no sample has it as a side"
    Duel.objects.update(king=None, opponent="reference")
    assert shown(reviewer) == (False, False)
    assert get(client, reviewer, path).json()["reference"] is None
    assert not AuditEntry.objects.filter(action="sample.look").exists()
    assert shown(curator) == (True, True)
    entry = AuditEntry.objects.get(action="sample.look")
    assert (entry.actor, entry.subject) == (curator, str(duel.sample_id))
    Sample.objects.update(status="approved")
    assert shown(reviewer) == (True, True)


def test_records_are_listed_by_repo(client: Client, ada: User, project: Project) -> None:
    make_pull_request(project, "one", repo="acme/one", files=["a.py"])
    make_pull_request(project, "two", repo="acme/two")

    answer = get(client, ada, "/projects/acme/pull-requests", repo="acme/one")

    assert ids(answer) == ["one"]
    assert answer.json()["data"][0]["files"] == ["a.py"]


def test_exclusions_are_added_changed_listed_and_removed(client: Client, ada: User, project: Project) -> None:
    headers, path = make_bearer(ada), "/api/v1/projects/acme/exclusions"

    def call(method: str, body: dict[str, Any]) -> Any:
        return client.generic(method, path, json.dumps(body), JSON, headers=headers)

    added = call("POST", {"exclusions": [{"instance_id": "one", "reason": "flaky"}]})
    changed = call("POST", {"exclusions": [{"instance_id": "one", "reason": "no tests"}]})

    assert added.json() == {"data": [{"instance_id": "one", "outcome": "added"}]}
    assert changed.json() == {"data": [{"instance_id": "one", "outcome": "changed"}]}
    listed = client.get(path, headers=headers).json()["data"]
    assert [(row["instance_id"], row["reason"], row["created_by"]) for row in listed] == [
        ("one", "no tests", ada.username)
    ]
    refused = call("POST", {"exclusions": [{"instance_id": "two", "reason": ""}]})
    assert (refused.status_code, refused.json()["errors"][0]["path"]) == (422, "exclusions.0.reason")
    assert call("DELETE", {"instance_ids": ["one"]}).json() == {"removed": 1}
    assert call("DELETE", {"instance_ids": ["one"]}).status_code == 404
    assert not Exclusion.objects.exists()
    assert AuditEntry.objects.filter(project=project, action__startswith="exclusion.").count() == 3


def test_the_pages_show_prompts_with_figures_escaped(client: Client, ada: User, project: Project) -> None:
    hostile = [{"role": "user", "content": "<script>alert(1)</script>\x1b[2J"}]
    prompt = make_prompt(project, instance_id="one", history=hostile)
    make_pull_request(project, "one", title="A title", patch="<b>patch</b>", issue="<i>issue</i>")
    Exclusion.objects.create(project=project, instance_id="one", reason="<u>odd</u>")
    client.force_login(ada)

    listed = client.get(reverse("prompt-list", args=["acme"]), {"repo": "", "has_record": "true"}).content.decode()
    page = client.get(reverse("prompt-page", args=["acme", prompt.pk])).content.decode()
    exclusions = client.get(reverse("exclusion-list", args=["acme"])).content.decode()

    assert reverse("prompt-page", args=["acme", prompt.pk]) in listed
    for text in (listed, page, exclusions):
        assert not any(tag in text for tag in ("<script>alert", "<b>patch", "<i>issue", "<u>odd", "\x1b"))
    assert "A title" in page and "&lt;u&gt;odd" in page and "&lt;u&gt;odd" in exclusions
    assert client.get(reverse("prompt-page", args=["acme", "zzz"])).status_code == 404


def test_the_exclusions_page_excludes_and_includes_instances(client: Client, ada: User, project: Project) -> None:
    client.force_login(ada)

    client.post(reverse("exclusion-set", args=["acme"]), {"instance_ids": "one\r\n two \n\n", "reason": "flaky"})
    assert set(Exclusion.objects.values_list("instance_id", "reason")) == {("one", "flaky"), ("two", "flaky")}
    gone = client.post(
        reverse("exclusion-remove", args=["acme"]), {"instance_id": "one", "next": "//evil.example/", "x": 1}
    )

    assert gone.headers["Location"] == reverse("exclusion-list", args=["acme"])
    assert list(Exclusion.objects.values_list("instance_id", flat=True)) == ["two"]
    refused = client.post(reverse("exclusion-set", args=["acme"]), {"instance_ids": "x", "reason": ""}, follow=True)
    assert refused.status_code == 422 and refused.context["form"].errors["reason"]
    assert ">\nx</textarea>" in refused.content.decode()
