"""Experiment cards: by REST and on the page, ticked off by the comparison of both models."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from curation.evaluations.models import Experiment
from curation.exports.models import Export
from curation.projects.models import AuditEntry
from curation.runs.models import Run
from tests.evaluations.evaluating import page, screened, signed_in
from tests.model_server import ModelServer

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_card_is_ticked_off_by_rest_and_on_the_page(client: Client, server: ModelServer) -> None:
    project = signed_in(client)
    evaluation = screened(project, server)
    run = Run.objects.create(project=project, kind="export", state="succeeded")
    export = Export.objects.create(project=project, run=run, recipe={}, ready=True, manifest_sha256="ab" * 32)
    here = f"/api/v1/projects/{project.slug}/experiments"
    card = {"name": "SFT", "export": str(export.pk), "training": "lora r=8", "expected": {"exact": 0.5, "fmt": 0.9}}

    made = client.post(here, card, "application/json")

    assert made.status_code == 201, made.content
    assert made.json()["manifest_sha256"] == "ab" * 32 and "Name an evaluated" in made.json()["problem"]
    assert made.json()["created_by"] == str(Experiment.objects.get().created_by)
    assert [one["reached"] for one in made.json()["expectations"]] == [None, None]
    path = f"/api/v1/experiments/{made.json()['id']}"
    models = {name: {"evaluation": str(evaluation.pk), "model": name} for name in ("bad", "good")}
    whole = {**card, "base": models["bad"], "trained": models["good"]}
    put = client.put(path, whole, "application/json", headers={"If-Match": client.get(path)["ETag"]})
    assert put["ETag"].strip('"') in client.get(path)["ETag"] and put["ETag"] != made["ETag"]
    stale = client.put(path, card, "application/json", headers={"If-Match": made["ETag"]})
    assert (stale.status_code, client.get(path).json()["trained"]) == (412, models["good"])
    found = put.json()
    assert found["problem"] is None and found["trained"] == models["good"]
    assert [(one["metric"], one["delta"], one["reached"]) for one in found["expectations"]] == [
        ("fmt", 0.4, False),
        ("exact", 0.6, True),
    ]
    assert client.get(here).json()["data"] == [found] == [client.get(path).json()] and found["notes"] == []
    shown = page(client, project, "experiment-list")
    for said in ("+60.0 pp", "not reached", "reached, may be chance", "not known", "lora r=8"):
        assert said in shown
    evaluation.screened.filter(by__name="good")[0].delete()
    over = "Over 4 rows; 1 answer without a counterpart in the other model."
    assert client.get(path).json()["notes"] == [over] and over in page(client, project, "experiment-list")
    Export.objects.all().delete()
    assert client.get(path).json()["manifest_sha256"] == "ab" * 32
    assert client.delete(path).status_code == 204 and not Experiment.objects.exists()
    actions = AuditEntry.objects.filter(subject="SFT").order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["experiment.create", "experiment.update", "experiment.delete"]


def test_the_form_writes_the_same_card(client: Client, server: ModelServer) -> None:
    project = signed_in(client)
    evaluation = screened(project, server)
    url = reverse("experiment-list", args=[project.slug])
    form = {
        "name": "SFT",
        "base": f"{evaluation.pk}/bad",
        "trained": f"{evaluation.pk}/good",
        "expected": "exact = 0.3",
    }

    answer = client.post(url, {**form, "file": SimpleUploadedFile("sft.yaml", b"lr: 0.0002\n")})

    assert answer.status_code == 302
    card = Experiment.objects.get()
    assert (card.training, card.expected) == ("lr: 0.0002\n", {"exact": 0.3})
    assert client.post(f"{url}?edit={card.pk}", {**form, "name": "Second"}).status_code == 302
    assert Experiment.objects.get().name == "Second"
    assert client.post(reverse("experiment-delete", args=[project.slug, card.pk])).status_code == 302
    assert not Experiment.objects.exists()


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"expected": {"speed": 1}}, "expected.speed"),
        ({"expected": {"exact": 34}}, "expected.exact"),
        ({"name": " "}, "name"),
        ({"export": "99"}, "export"),
        ({"trained": {"evaluation": "99"}}, "trained.evaluation"),
    ],
)
def test_a_wrong_card_is_refused_at_its_field(client: Client, wrong: dict[str, object], path: str) -> None:
    project = signed_in(client)
    answer = client.post(f"/api/v1/projects/{project.slug}/experiments", {"name": "x", **wrong}, "application/json")
    assert answer.status_code == 422 and answer.json()["errors"][0]["path"] == path
    assert not Experiment.objects.exists()
