"""An export names everybody who decided a sample, and so do samples imported from it."""

from typing import Any

import orjson
import pytest
from django.test import Client

from curation.projects.models import Project, Role
from curation.review.decisions.decide import decide
from curation.review.models import Decision
from tests.exports.exporting import content, export_of
from tests.factories import make_bearer, make_member, make_project
from tests.review.importing import bring_samples
from tests.review.rows import judged, reviewer_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project() -> Project:
    return make_project("billing", settings_json={"review": {"overlap": 2}})


def test_all_deciders_are_in_metadata_manifest_and_provenance_and_come_back(
    project: Project, client: Client, tmp_path: Any, settings: Any
) -> None:
    settings.MEDIA_ROOT = str(tmp_path)
    ana, ben, carl = reviewer_of(project), reviewer_of(project), reviewer_of(project, Role.CURATOR)
    names = [one.user.username for one in (ana, ben, carl)]
    one, two = "challenger", "king"
    first = judged(project, challenger="THOUGHT: a\n\n```bash\necho agreed\n```")
    second = judged(project, challenger="THOUGHT: b\n\n```bash\necho disputed\n```")
    for sample, picks in ((first, (one, one)), (second, (one, two))):
        for person, pick in zip((ana, ben), picks, strict=True):
            decide(access=person, sample_id=sample.pk, action="approve", preference=pick)
    decide(access=carl, sample_id=second.pk, action="approve", preference=one)
    export = export_of(project, {"formats": ["sft-messages"], "metadata": True, "splits": {"train": 1.0}})
    rows = {row["id"]: row for row in map(orjson.loads, content(export, "sft-messages.train.jsonl").splitlines())}
    assert rows[str(first.pk)]["reviewers"] == names[:2] and rows[str(second.pk)]["reviewers"] == names[2:]
    manifest = orjson.loads(content(export, "manifest.json"))
    assert manifest["reviewers"] == [{"name": name, "samples": 1} for name in sorted(names)]
    frozen = {row["sample"]: row for row in map(orjson.loads, content(export, "frozen.jsonl").splitlines())}
    deciders = {pk: [(d["reviewer"], d["pick"]) for d in row["deciders"]] for pk, row in frozen.items()}
    assert deciders == {
        str(first.pk): [(names[0], "candidate"), (names[1], "candidate")],
        str(second.pk): [(names[0], "candidate"), (names[1], "opponent"), (names[2], "candidate")],
    }
    headers = make_bearer(carl.user)
    for sample, people in ((first, names[:2]), (second, names)):
        sha256 = frozen[str(sample.pk)]["rows"][0]["sha256"]
        traced = client.get(f"/api/v1/exports/{export.pk}/rows/{sha256}", headers=headers).json()
        assert [row["reviewer"] for row in traced["decisions"]] == people

    target = make_project("again")
    user = make_member(target, role=Role.ADMIN)
    bring_samples(target, user, content(export, "sft-messages.train.jsonl"), "sft.jsonl", decisions=True)
    comments = set(Decision.objects.filter(sample__project=target).values_list("comment", flat=True))
    assert comments == {f"The file names {names[0]}, {names[1]}.", f"The file names {names[2]}."}
