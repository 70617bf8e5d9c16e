"""Planted flaws, from REST to the files and the page: each is kept out with its reason, or flagged."""

import hashlib
from typing import Any

import orjson
import pytest
from django.test import Client

from curation.exports.models import Export
from curation.runs.models import Run
from curation.samples.models import Sample
from tests.exports.exporting import answer, content, drive_export
from tests.exports.pages.test_api import Script
from tests.factories import make_duel, make_pull_request, set_history
from tests.judging.scan.cases import FOUND

pytestmark = pytest.mark.django_db(transaction=True)
KEY = FOUND["key"][4][1]
EMAIL = "ada.lovelace@acme-corp.io"
HIDDEN_NAME = "reconcile_quarterly_ledger"


class Planted:
    """A project whose samples are decided by REST."""

    def __init__(self) -> None:
        self.script = Script("admin")

    def sample(self, text: str, *, history: str, score: float = 80.0) -> Sample:
        sample = make_duel(self.script.project, challenger=text, score=score).sample
        assert sample is not None
        set_history(sample.duel.prompt, [{"role": "user", "content": history}])
        return sample

    def approve(self, sample: Sample, **values: str) -> None:
        done = self.script("post", f"/samples/{sample.pk}/decisions", {"action": "approve", **values})
        assert done.status_code == 201, done.content

    def export(self, formats: list[str]) -> Export:
        started = self.script("post", f"{self.script.here}/exports", {"recipe": {"formats": formats}}).json()
        return drive_export(Run.objects.get(pk=started["id"]))

    def lines(self, export: Export, name: str) -> list[dict[str, Any]]:
        answer = self.script("get", f"/exports/{export.pk}/files/{name}")
        return [orjson.loads(line) for line in b"".join(answer.streaming_content).splitlines()]


def test_every_planted_flaw_is_found() -> None:
    planted = Planted()
    good = planted.sample(answer(1), history="Fix the totals.", score=90.0)
    exact = planted.sample(answer(1), history="Fix the totals.", score=60.0)
    near = planted.sample(answer(1).replace("\n\n", " indeed\n\n"), history="Fix the totals.", score=70.0)
    secret = planted.sample(f"{answer(2)} {KEY}", history="Fix the invoices.")
    in_history = planted.sample(answer(3), history=f"Deploy with {KEY}.")
    mail = planted.sample(f"{answer(4)} {EMAIL}", history=f"Ask {EMAIL}.")
    commented = planted.sample(answer(5), history="Fix the taxes.")
    revised = planted.sample(answer(6), history="Fix the ledger.")
    make_pull_request(
        planted.script.project,
        revised.instance_id,
        patch=f"--- a/x.py\n+++ b/x.py\n@@ -1 +1,2 @@\n+def {HIDDEN_NAME}(rows):\n+    return rows\n",
    )
    for sample in (good, exact, near, secret, in_history, mail, revised):
        planted.approve(sample)
    planted.approve(commented, comment=f"Ask {EMAIL}, the key was {KEY}.")
    body = {"text": f"{answer(6)}\n\n```bash\ngrep -rn {HIDDEN_NAME} .\n```"}
    assert planted.script("post", f"/samples/{revised.pk}/revisions", body).status_code == 201

    export = planted.export(["sft-messages"])

    reasons = {row["sample"]: row["reason"] for row in planted.lines(export, "excluded.jsonl")}
    assert reasons == {
        str(exact.pk): "duplicate",
        str(near.pk): "duplicate",
        str(secret.pk): "secret",
        str(in_history.pk): "secret",
        str(revised.pk): "not_approved",
    }
    written = content(export, "sft-messages.train.jsonl").splitlines(keepends=True)
    sent = [hashlib.sha256(line).hexdigest() for line in written]
    frozen = {row["sample"]: row for row in planted.lines(export, "frozen.jsonl") if row["rows"]}
    assert set(frozen) == {str(sample.pk) for sample in (good, mail, commented)}
    assert sorted(sent) == sorted(row["rows"][0]["sha256"] for row in frozen.values())
    assert frozen[str(mail.pk)]["masked"] == {"email": 2}
    everything = b"".join(content(export, file.name) for file in export.files.all())
    assert KEY.encode() not in everything and EMAIL.encode() not in everything
    flags = {pk: planted.script("get", f"/samples/{pk}").json()["flags"] for pk in (commented.pk, revised.pk)}
    assert set(flags[commented.pk]) == {"secret", "pii"} and flags[revised.pk] == ["leak"]
    assert Sample.objects.get(pk=revised.pk).status == "pending"

    client = Client()
    client.force_login(planted.script.user)
    page = client.get(f"/p/{planted.script.project.slug}/exports/{export.pk}/").content.decode()
    for code, samples in (("duplicate", (exact, near)), ("secret", (secret, in_history))):
        assert f'<td class="mono nowrap">{code}</td>' in page
        assert all(f"/samples/{sample.pk}/" in page for sample in samples)
    groups = client.get(f"/p/{planted.script.project.slug}/exports/{export.pk}/duplicates/").content.decode()
    assert all(f"/samples/{sample.pk}/" in groups for sample in (good, exact, near))
