"""The REST calls of contamination checks."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from curation.evaluations.models import ContaminationCheck
from tests.evaluations.evaluating import done, make_rows, uploaded
from tests.exports.pages.test_api import Script
from tests.model_server import ModelServer

pytestmark = pytest.mark.django_db(transaction=True)


def test_contamination_by_upload_and_its_rows(server: ModelServer) -> None:
    script, rows = Script(), make_rows(3)
    split = uploaded(script, rows)
    empty = script("get", f"/splits/{split}/contamination").json()
    assert (empty["check"], empty["data"]) == (None, [])
    text = (json.dumps(rows[1]) + "\n").encode()
    form = {"file": SimpleUploadedFile("train.jsonl", text)}
    run = done(script, Client().post(f"/api/v1/splits/{split}/contamination", form, headers=script.headers))
    assert run["result"]["check"] == str(ContaminationCheck.objects.get().pk) and run["result"]["exact"] == 1
    found = script("get", f"/splits/{split}/contamination?level=exact").json()
    assert found["check"]["counts"]["contaminated"] == 1
    assert found["data"][0]["number"] == 2 and "look at the users" in found["data"][0]["matches"][0]["prompt"]
    assert script("get", f"/splits/{split}/contamination?level=near").json()["data"] == []
    assert script("get", f"/splits/{split}/contamination?level=odd").status_code == 400
    assert script("post", f"/splits/{split}/contamination", {}).status_code == 422
    assert script("post", f"/splits/{split}/contamination", {"colour": "red"}).status_code == 422
