"""The page and the REST calls of findings: marked, listed, cleared with a reason, filtered."""

import re

import pytest
from django.test import Client

from curation.projects.models import AuditEntry
from curation.review.decisions.decide import decide
from curation.review.decisions.revise import revise
from curation.samples.models import Sample
from tests.factories import CHALLENGER, make_bearer
from tests.judging.scan.cases import FOUND
from tests.review.rows import judged, project_with_reviewer

pytestmark = pytest.mark.django_db
KEY = FOUND["key"][4][1]
PLANTED = f"{CHALLENGER}\nAsk ada@acme-corp.io for {KEY}."


def test_findings_are_marked_and_listed_with_a_link_to_each(client: Client) -> None:
    access = project_with_reviewer(blind=False)
    sample = judged(access.project)
    revise(access=access, sample_id=sample.pk, text=PLANTED)
    client.force_login(access.user)
    page = client.post(f"/p/{access.project.slug}/samples/{sample.pk}/").content.decode()
    marks = re.findall(r'<mark class="scan" id="(finding-\d+)" title="([a-z-]+)">([^<]+)</mark>', page)
    assert [(rule, text) for _, rule, text in marks] == [("email", "ada@acme-corp.io"), ("github-token", KEY)]
    for anchor, rule, _ in marks:
        assert f'<strong>{rule}</strong> in <a href="#{anchor}">right answer</a>' in page
    assert "masked in exports" in page and "keeps its rows out of exports" in page


def test_while_blind_the_list_names_seats_and_hides_what_others_wrote(client: Client) -> None:
    access = project_with_reviewer()
    sample = judged(access.project, challenger=PLANTED)
    decide(access=access, sample_id=sample.pk, action="flag", reason="look", comment="mail bob@acme-corp.io")
    client.force_login(access.user)
    page = client.post(f"/p/{access.project.slug}/samples/{sample.pk}/").content.decode()
    block = page[page.index('id="findings"') :]
    block = block[: block.index("</ul>")]
    assert "ada@acme-corp.io" in block and "bob@acme-corp.io" not in block
    assert "challenger" not in block and re.search(r">(left|right) answer<", block)


def test_a_person_clears_one_finding_on_the_page_with_a_reason(client: Client) -> None:
    access = project_with_reviewer()
    sample = judged(access.project, challenger=PLANTED)
    decide(access=access, sample_id=sample.pk, action="approve")
    client.force_login(access.user)
    url = f"/p/{access.project.slug}/samples/{sample.pk}/"
    page = client.post(url).content.decode()
    rule, digest = re.findall(
        r'name="rule" value="([a-z-]+)"><input type="hidden" name="value_sha256" value="(\w+)"', page
    )[1]
    form = {"rule": rule, "value_sha256": digest, "reason": "Revoked in March."}
    assert client.post(f"{url}clear/", {**form, "reason": ""}).status_code == 422
    assert client.post(f"{url}clear/", form).status_code == 302
    page = client.post(url).content.decode()
    assert f"cleared by {access.user.username}" in page
    entry = AuditEntry.objects.get(action="sample.clear")
    assert entry.data == {"rule": rule, "value_sha256": digest, "reason": "Revoked in March."}
    assert Sample.objects.get(pk=sample.pk).shown_flags(hidden=False) == ["pii"]
    client.post(f"{url}clear/", {**form, "withdraw": "1"})
    assert Sample.objects.get(pk=sample.pk).shown_flags(hidden=False) == ["secret", "pii"]


def test_a_script_lists_clears_and_withdraws(client: Client) -> None:
    access = project_with_reviewer(blind=False)
    sample = judged(access.project, challenger=PLANTED)
    headers = make_bearer(access.user)
    url = f"/api/v1/samples/{sample.pk}"
    found = client.get(f"{url}/findings", headers=headers).json()["data"]
    assert [(row["part"], row["rule"], row["kind"], row["action"]) for row in found] == [
        ("challenger", "email", "pii", "mask"),
        ("challenger", "github-token", "secret", "keep_out"),
    ]
    assert PLANTED[found[1]["start"] : found[1]["end"]] == KEY
    body = {"rule": "github-token", "value_sha256": found[1]["value_sha256"], "reason": "Revoked."}
    done = client.post(f"{url}/clearances", body, content_type="application/json", headers=headers)
    assert done.status_code == 201 and done["ETag"].strip('W/"') == "2"
    assert [row["cleared_by"] for row in done.json()["data"]] == [None, access.user.username]
    wrong = {**body, "value_sha256": "0" * 64}
    assert client.post(f"{url}/clearances", wrong, content_type="application/json", headers=headers).status_code == 404
    gone = f"{url}/clearances/github-token/{body['value_sha256']}"
    assert client.delete(gone, headers=headers).status_code == 204
    assert client.delete(gone, headers=headers).status_code == 404
    reader = make_bearer(access.user, "read")
    assert client.post(f"{url}/clearances", body, content_type="application/json", headers=reader).status_code == 403


def test_the_list_of_samples_filters_by_what_was_found(client: Client) -> None:
    access = project_with_reviewer()
    secret, pii, clean = (judged(access.project) for _ in range(3))
    revise(access=access, sample_id=secret.pk, text=f"key {KEY}")
    revise(access=access, sample_id=pii.pk, text="mail ada@acme-corp.io")
    client.force_login(access.user)
    for flag, sample in (("secret", secret), ("pii", pii)):
        answer = client.get(f"/api/v1/projects/{access.project.slug}/samples?flags={flag}").json()
        assert [row["id"] for row in answer["data"]] == [str(sample.pk)]
    assert clean.shown_flags(hidden=False) == []
