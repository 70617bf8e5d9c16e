"""The pages that show a contamination check."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from curation.runs.models import Run, RunState
from tests.driving import end
from tests.evaluations.evaluating import make_rows, page, screened, signed_in
from tests.model_server import ModelServer

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_check_is_shown_above_the_scores_and_splits_them(client: Client, server: ModelServer) -> None:
    project = signed_in(client)
    evaluation = screened(project, server)
    split = evaluation.split
    assert split is not None
    rows = make_rows(tiers=("easy", "hard"))
    moved = {
        **rows[0],
        "messages": [{"role": "user", "content": "TASK: look at the buckets.\n\nNow."}, rows[0]["messages"][1]],
    }
    text = "".join(json.dumps(row) + "\n" for row in (rows[3], moved)).encode()
    answer = client.post(
        reverse("split-check", args=[project.slug, split.pk]), {"file": SimpleUploadedFile("train.jsonl", text)}
    )
    assert answer.status_code == 302
    assert "A check is running" in page(client, project, "split-page", split.pk)
    end(Run.objects.get(kind="contamination"))
    shown = page(client, project, "evaluation-page", evaluation.pk)
    assert "2 of 5 rows of this split are in the training data" in shown
    assert shown.index("are in the training data") < shown.index("Figures by model")
    assert "Clean rows" in shown
    assert "Paraphrases were not looked for" in shown and "in other words" not in shown
    found = page(client, project, "split-page", split.pk, query="?level=task_answer")
    assert "Training row 2" in found and "Now." in found and found.count('id="row-') == 2
    exact = page(client, project, "split-page", split.pk, query="?level=exact")
    assert exact.count('id="row-') == 1


def test_a_newer_check_that_failed_is_named_beside_the_last_result(client: Client, server: ModelServer) -> None:
    project = signed_in(client)
    split = screened(project, server).split
    assert split is not None
    for text in (b'{"messages": [{"role": "assistant", "content": "Rye and oats."}]}', b"{broken"):
        file = SimpleUploadedFile("train.jsonl", text)
        client.post(reverse("split-check", args=[project.slug, split.pk]), {"file": file})
        run = end(Run.objects.filter(kind="contamination").latest("pk"))
    assert run.state == RunState.FAILED
    shown = page(client, project, "split-page", split.pk)
    assert "No row of this split is in the training data" in shown
    assert f"run {run.pk}</a> failed" in shown and "notice--good" not in shown
